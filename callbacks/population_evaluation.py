"""Scores on held-out problems over the course of a run."""

import dataclasses
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import lightning as L
from typing_extensions import override

from populora.callbacks.evaluation_figure import evaluation_figure
from populora.callbacks.held_out import EMBEDDED, Scores, load_problems, score
from populora.callbacks.run import Evaluated, check_evaluated, data_of, evaluated_members, module_of
from populora.callbacks.tensorboard import log_figure, log_scalars
from populora.errors import ConfigError
from populora.records import Member, RolloutBatch
from populora.rollouts.solving import Question, Sampling


class PopulationEvaluation(L.Callback):
    """Lets the base and the members answer held-out problems before, during and after training.

    All answer the same problems in one batch of the engine. Before the first iteration only the base answers,
    because a fresh member equals it; the base keeps that score for the run. ``validate`` evaluates as well.
    Place it before :class:`~populora.callbacks.Evolution` to evaluate parents rather than newborn children.

    Args:
        every: Iterations between two evaluations; one more comes at the end.
        problems: ``embedded`` for those that ship with the package, or a JSONL file with the fields of
            :class:`~populora.records.Problem`.
        tasks: Task types evaluated.
        count: Problems of each task type.
        attempts: Answers to each problem.
        temperature: Sampling temperature; 0 is greedy.
        seed: Of the choice of problems and of the sampling.
        members: ``students``, or ``all`` for teachers too.

    Attributes:
        scores: All scores so far, oldest first.

    Raises:
        ConfigError: an argument is out of bounds, or there are no such problems.
    """

    def __init__(
        self,
        every: int = 10,
        problems: str = EMBEDDED,
        tasks: Sequence[str] = ("deduction", "abduction", "induction"),
        count: int = 60,
        attempts: int = 1,
        temperature: float = 1.0,
        seed: int = 1,
        members: Evaluated = "students",
    ) -> None:
        for name, value in (
            ("every", every),
            ("count", count),
            ("attempts", attempts),
            ("tasks", len(tasks)),
        ):
            if value < 1:
                raise ConfigError(f"PopulationEvaluation({name}=…): expected at least 1, got {value}")
        if temperature < 0:
            raise ConfigError(f"PopulationEvaluation(temperature={temperature}): expected 0 or more")
        check_evaluated("PopulationEvaluation", members)
        self.scores: list[Scores] = []
        self._problems = load_problems(problems, tasks, count, seed)
        self._every = every
        self._attempts = attempts
        self._temperature = temperature
        self._seed = seed
        self._members = members

    @property
    def programs(self) -> frozenset[str]:
        """Programs of the problems, which proposals may not repeat."""
        return frozenset(problem.program for problem in self._problems)

    @property
    def answers_each(self) -> int:
        """Number of answers behind one member's scores."""
        return len(self._problems) * self._attempts

    @property
    def base(self) -> Scores | None:
        """The base's scores; None before the first evaluation."""
        return next((s for s in self.scores if s.member is None), None)

    def latest(self, member: Member) -> Scores | None:
        """Return the newest scores of who holds the slot now; None for a child not evaluated yet."""
        own = (s for s in reversed(self.scores) if (s.member, s.born) == (member.name, member.born))
        return next(own, None)

    @override
    def setup(self, trainer: L.Trainer, pl_module: L.LightningModule, stage: str) -> None:
        data_of(trainer).reserve(self.programs)

    @override
    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if module_of(trainer).iteration == 0:
            self._evaluate(trainer)

    @override
    def on_train_batch_end(
        self,
        trainer: L.Trainer,
        pl_module: L.LightningModule,
        outputs: Any,
        batch: RolloutBatch,
        batch_idx: int,
    ) -> None:
        if (batch.iteration + 1) % self._every == 0:
            self._evaluate(trainer)

    @override
    def on_train_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self._evaluate(trainer)

    @override
    def on_validation_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if trainer.validating:
            self._evaluate(trainer)

    @override
    def state_dict(self) -> dict[str, Any]:
        return {"scores": [dataclasses.asdict(scores) for scores in self.scores]}

    @override
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.scores = [Scores(**fields) for fields in state_dict["scores"]]

    def _evaluate(self, trainer: L.Trainer) -> None:
        """Score whoever has no score at this iteration yet."""
        iteration, members = module_of(trainer).iteration, evaluated_members(trainer, self._members)
        due: list[Member | None] = [] if self.base else [None]
        if iteration > 0:
            due += [member for member in members if not self._scored(member, iteration)]
        if not due:
            return
        fresh = self._score(trainer, due)
        if iteration == 0:
            fresh += [dataclasses.replace(fresh[0], member=member.name) for member in members]
        self.scores += fresh
        self._log(trainer, fresh)

    def _scored(self, member: Member, iteration: int) -> bool:
        scores = self.latest(member)
        return scores is not None and scores.iteration == iteration

    def _score(self, trainer: L.Trainer, players: Sequence[Member | None]) -> list[Scores]:
        data, iteration = data_of(trainer), module_of(trainer).iteration
        names = [None if player is None else player.name for player in players]
        answered = data.solve(
            [Question(problem, name) for name in names for problem in self._problems],
            Sampling(self._attempts, data.rollout.max_attempt_tokens, self._temperature, self._seed),
        )
        shares = iter(fmean(answer.verdict.correct for answer in answers) for answers in answered)
        return [
            Scores(
                iteration,
                name,
                0 if player is None else player.born,
                *score(self._problems, [next(shares) for _ in self._problems]),
            )
            for name, player in zip(names, players, strict=True)
        ]

    def _log(self, trainer: L.Trainer, fresh: Sequence[Scores]) -> None:
        iteration = module_of(trainer).iteration
        for scores in fresh:
            name = scores.member or "base"
            by_task = {f"heldout/{task}/{name}": share for task, share in scores.by_task.items()}
            by_length = {
                f"heldout_length/{length}/{name}": share for length, share in scores.by_length.items()
            }
            log_scalars(trainer, {**by_task, **by_length, f"heldout/mean/{name}": scores.mean}, iteration)
        log_figure(trainer, "heldout", evaluation_figure(self.scores), iteration)
