"""How hard each teacher's problems are by one unchanging measure."""

import dataclasses
from collections import defaultdict, deque
from collections.abc import Iterable
from statistics import fmean
from typing import Any

import lightning as L
from typing_extensions import override

from populora.callbacks.held_out import read_problem
from populora.callbacks.run import data_of, module_of
from populora.callbacks.statistics import grouped_means
from populora.callbacks.tensorboard import log_scalars
from populora.errors import ConfigError
from populora.records import Problem, RolloutBatch
from populora.rollouts.solving import Question, Sampling
from populora.seeding import derive, run_seed


class TeacherDifficulty(L.Callback):
    """Lets the base, which every student was at first, attempt each teacher's newest problems.

    ``difficulty/<teacher>`` is the share that the base fails. Solve rates of the students cannot show this:
    they rise when students learn and fall when teachers do.

    Args:
        every: Iterations between two measurements; one more comes at the end.
        count: Newest problems of each teacher.
        attempts: Answers to each problem.
        temperature: Sampling temperature; 0 is greedy.

    Raises:
        ConfigError: an argument is out of bounds.
    """

    def __init__(self, every: int = 10, count: int = 20, attempts: int = 2, temperature: float = 1.0) -> None:
        for name, value in (("every", every), ("count", count), ("attempts", attempts)):
            if value < 1:
                raise ConfigError(f"TeacherDifficulty({name}={value}): expected at least 1")
        if temperature < 0:
            raise ConfigError(f"TeacherDifficulty(temperature={temperature}): expected 0 or more")
        self._every = every
        self._attempts = attempts
        self._temperature = temperature
        self._written: dict[str, deque[Problem]] = defaultdict(lambda: deque(maxlen=count))
        self._measured = 0

    @override
    def on_train_batch_end(
        self,
        trainer: L.Trainer,
        pl_module: L.LightningModule,
        outputs: Any,
        batch: RolloutBatch,
        batch_idx: int,
    ) -> None:
        self._remember(batch.new_problems)
        if (batch.iteration + 1) % self._every == 0:
            self._measure(trainer)

    @override
    def on_train_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if self._measured < module_of(trainer).iteration:
            self._measure(trainer)

    @override
    def state_dict(self) -> dict[str, Any]:
        problems = [problem for newest in self._written.values() for problem in newest]
        return {"measured": self._measured, "written": [dataclasses.asdict(problem) for problem in problems]}

    @override
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._measured = state_dict["measured"]
        self._written.clear()
        self._remember(read_problem(fields) for fields in state_dict["written"])

    def _remember(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            self._written[str(problem.author)].append(problem)

    def _measure(self, trainer: L.Trainer) -> None:
        """Put the newest problems of whoever holds each teacher's slot now to the base."""
        module, data = module_of(trainer), data_of(trainer)
        self._measured = module.iteration
        born = {teacher.name: teacher.born for teacher in module.population.teachers}
        asked = [
            (name, problem)
            for name, problems in self._written.items()
            for problem in problems
            if problem.iteration >= born[name]
        ]
        if not asked:
            return
        seed = derive(run_seed(), "difficulty", module.iteration)
        answered = data.solve(
            [Question(problem, None) for _, problem in asked],
            Sampling(self._attempts, data.rollout.max_attempt_tokens, self._temperature, seed),
        )
        failed = [1 - fmean(answer.verdict.correct for answer in answers) for answers in answered]
        pairs = zip((name for name, _ in asked), failed, strict=True)
        log_scalars(trainer, grouped_means("difficulty", pairs), module.iteration)
