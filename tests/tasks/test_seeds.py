import ast
from collections import Counter
from typing import Any

from populora.config import RolloutConfig
from populora.tasks import configured, seed_problems
from populora.tasks.literals import canonical, canonical_arguments


def test_outputs_are_what_the_programs_return() -> None:
    for problem in seed_problems():
        for arguments, output in zip(problem.inputs, problem.outputs, strict=True):
            space: dict[str, Any] = {}
            exec(problem.program, space)  # noqa: S102 - our own text
            result = space["f"](*ast.literal_eval(f"[{arguments}]"))
            assert output == canonical(repr(result))
            assert arguments == canonical_arguments(arguments)


def test_each_task_can_show_its_fill_of_references() -> None:
    problems, config = seed_problems(), RolloutConfig()
    assert Counter(p.task for p in problems) == dict.fromkeys(configured(config), config.references)
    assert len({p.key for p in problems}) == len(problems)


def test_induction_has_its_inputs_and_a_message() -> None:
    for problem in seed_problems():
        distinct = len(set(problem.inputs))
        assert distinct == (RolloutConfig().induction_inputs if problem.task == "induction" else 1)
        assert (problem.message is not None) == (problem.task == "induction")
