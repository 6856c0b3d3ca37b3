"""A run in miniature: real population and records, a stand-in trainer, module and datamodule."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.profilers import PassThroughProfiler

from populora.config import PopulationConfig
from populora.population.members import Population
from populora.records import (
    Attempt,
    Completion,
    Match,
    Member,
    MemberUpdate,
    Problem,
    Proposal,
    RolloutBatch,
    StepTimings,
    Timings,
    Update,
    Verdict,
)
from populora.rollouts.solving import Answer, Question, Sampling

PROGRAM = "def f(x):\n    return x + 1"


class Records:
    """Builds records with everything that does not matter filled in."""

    @staticmethod
    def completion(text: str = "text", tokens: int = 3, truncated: bool = False) -> Completion:
        return Completion((1,) * tokens, (-0.5,) * tokens, text, "length" if truncated else "stop")

    @staticmethod
    def problem(program: str = PROGRAM, task: str = "deduction", **fields: Any) -> Problem:
        return Problem(task, program, **{"inputs": ("1",), "outputs": ("2",), **fields})

    def proposal(
        self,
        member: Member,
        problem: Problem | None = None,
        match: int = 0,
        solve_rate: float | None = None,
        reward: float = 0.0,
        failure: str | None = None,
        completion: Completion | None = None,
    ) -> Proposal:
        return Proposal(
            member=member,
            task=problem.task if problem else "deduction",
            match=match,
            group=0,
            prompt_ids=(5, 6),
            completion=completion or self.completion(),
            problem=problem,
            failure=failure if problem is None else None,
            solve_rate=solve_rate,
            reward=reward,
        )

    def attempt(
        self,
        member: Member,
        correct: bool,
        match: int = 0,
        problem: Problem | None = None,
        from_buffer: bool = False,
        reward: float = 0.0,
        completion: Completion | None = None,
        failure: str = "wrong",
    ) -> Attempt:
        return Attempt(
            member=member,
            problem=problem or self.problem(),
            match=match,
            group=0,
            prompt_ids=(7, 8),
            completion=completion or self.completion(),
            verdict=Verdict(correct, None if correct else failure),
            reward=reward,
            from_buffer=from_buffer,
        )

    @staticmethod
    def batch(
        iteration: int = 0,
        matches: Sequence[Match] = (),
        proposals: Sequence[Proposal] = (),
        attempts: Sequence[Attempt] = (),
        timings: Timings | None = None,
    ) -> RolloutBatch:
        return RolloutBatch(
            iteration, tuple(matches), tuple(proposals), tuple(attempts), timings or Timings()
        )

    @staticmethod
    def update(*members: Member, seconds: float = 1.0, tokens: int = 90, passed: int = 60) -> Update:
        updates = (MemberUpdate(m, True, 4, 40, 0.25, 0.5, 1.5, 2.0, 0.0, 0.01) for m in members)
        return Update(tuple(updates), tokens, passed, StepTimings(forward=seconds))


@dataclass
class Run:
    """A stand-in trainer with what it leads to."""

    folder: Path
    population: Population = field(default_factory=lambda: Population(PopulationConfig(2, 2)))
    scalars: dict[tuple[str, int], float] = field(default_factory=dict)
    solves: Callable[[Question], bool] = lambda question: False
    asked: list[list[Question]] = field(default_factory=list)
    sampling: list[Sampling] = field(default_factory=list)

    def __post_init__(self) -> None:
        tokenizer = SimpleNamespace(decode=lambda ids: " ".join(map(str, ids)))
        self.module = SimpleNamespace(
            population=self.population, iteration=0, last_update=None, tokenizer=tokenizer, bank=None
        )
        self.data = SimpleNamespace(
            solve=self._solve,
            iterations=4,
            rollout=SimpleNamespace(max_attempt_tokens=77),
            stage_listener=None,
        )
        self.tensorboard = TensorBoardLogger(self.folder, name="", version="")
        self.trainer: Any = SimpleNamespace(
            lightning_module=self.module,
            datamodule=self.data,
            loggers=[SimpleNamespace(log_metrics=self._record), self.tensorboard],
            callbacks=[],
            checkpoint_callbacks=[],
            profiler=PassThroughProfiler(),
            is_global_zero=True,
            validating=False,
            log_dir=str(self.folder),
            default_root_dir=str(self.folder),
        )

    def _record(self, scalars: dict[str, float], step: int) -> None:
        self.scalars |= {(tag, step): value for tag, value in scalars.items()}

    def _solve(self, questions: Sequence[Question], sampling: Sampling) -> list[tuple[Answer, ...]]:
        self.asked.append(list(questions))
        self.sampling.append(sampling)
        return [
            (Answer((), Records.completion(), Verdict(self.solves(question))),) * sampling.count
            for question in questions
        ]

    def finish_batch(self, callback: Any, batch: RolloutBatch) -> None:
        """Let a batch end as Lightning would."""
        self.module.iteration = batch.iteration + 1
        callback.on_train_batch_end(self.trainer, self.module, None, batch, 0)

    def events(self) -> Any:
        """Read back what TensorBoard was given."""
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        self.tensorboard.experiment.flush()
        return EventAccumulator(str(self.folder), size_guidance={"tensors": 0, "images": 0}).Reload()


@pytest.fixture
def records() -> Records:
    return Records()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    stand_in = Run(tmp_path)
    yield stand_in
    stand_in.tensorboard.finalize("success")
