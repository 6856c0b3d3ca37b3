"""What is trained on: task types, prompts, parsing, and the buffer of problems.

A new task is one short file with a :class:`~populora.tasks.base.Task` and one line here; its two templates,
``propose_<name>.j2`` and ``solve_<name>.j2``, go into the folder that ``model.base.prompts`` names.
"""

from populora.config import RolloutConfig
from populora.registry import Registry
from populora.tasks.abduction import Abduction
from populora.tasks.base import Task
from populora.tasks.deduction import Deduction
from populora.tasks.induction import Induction
from populora.tasks.prompts import Prompts
from populora.tasks.seeds import seed_problems

__all__ = ["Prompts", "Task", "configured", "seed_problems", "tasks"]

tasks: Registry[Task] = Registry("task")
tasks.register("deduction")(Deduction())
tasks.register("abduction")(Abduction())
tasks.register("induction")(Induction())


def configured(config: RolloutConfig) -> dict[str, Task]:
    """Return the tasks of a run by name, in the order of ``config.tasks``, with its settings.

    Raises:
        ConfigError: a task is not known.
    """
    return {name: tasks[name].configure(config) for name in config.tasks}
