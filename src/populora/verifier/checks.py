"""What the sandbox is used for: to turn drafts into problems, and answers into verdicts."""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from populora.config import VerifierConfig, cores
from populora.records import Draft, Problem, Validation, Verdict
from populora.tasks import tasks
from populora.tasks.base import Trial
from populora.tasks.literals import canonical_arguments
from populora.tasks.screening import BANNED_NAMES, screen, screen_draft
from populora.verifier.background import LoopThread
from populora.verifier.clock import SHIFT_SECONDS
from populora.verifier.pool import ZygotePool
from populora.verifier.protocol import Layer
from populora.verifier.sandbox import Failure, Job, Limits, Outcome, Value

logger = logging.getLogger(__name__)

_BANNED_NAMES = tuple(sorted(BANNED_NAMES))


class Verifier:
    """Checks drafts and answers, many at a time, by running programs in a sandbox.

    Starts with its first use, or earlier by :meth:`start`; may be used again after :meth:`close`.

    Args:
        config: Limits.
        seed: Programs run with this hash seed; they are checked for determinism with the next one, and clocks that
            run years ahead.

    Example:
        >>> draft = Draft("deduction", "def f(x):\\n    return x + 1", ("41",))
        >>> with Verifier(VerifierConfig(workers=1)) as verifier:
        ...     problem = verifier.validate([draft])[0].problem
        ...     verifier.grade([(problem, "42"), (problem, "43")])
        [Verdict(correct=True, failure=None), Verdict(correct=False, failure='wrong')]
    """

    def __init__(self, config: VerifierConfig, seed: int = 0) -> None:
        self._config = config
        self._seeds = (seed % 2**32, (seed + 1) % 2**32)
        self._limits = Limits(
            config.cpu_seconds, config.wall_seconds, config.memory_mib, config.max_literal_chars
        )
        self._running: _Running | None = None

    def start(self) -> None:
        """Start the sandbox's processes, two per worker; without effect when they run.

        Raises:
            VerifierError: they cannot be started, or do not hold a program.
        """
        self._start()

    def _start(self) -> "_Running":
        if self._running is None:
            workers = self._config.workers or cores()
            unsafe = self._config.unsafe
            judge, checker = (
                ZygotePool(workers, seed, clock_shift, unsafe)
                for seed, clock_shift in zip(self._seeds, (0, SHIFT_SECONDS), strict=True)
            )
            with ExitStack() as stack:
                stack.callback(judge.close)
                stack.callback(checker.close)
                loop = stack.enter_context(contextlib.closing(LoopThread()))
                loop.call(_start(judge, checker))
                _report(judge.layers)
                self._running = _Running(judge, checker, loop, stack.pop_all())
        return self._running

    def close(self) -> None:
        """End the sandbox's processes and what runs in them."""
        if self._running is not None:
            self._running.stack.close()
            self._running = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def validate(self, drafts: Sequence[Draft]) -> list[Validation]:
        """Screen and run drafts; the programs' own results become the expected outputs.

        A draft is a problem when each of its inputs gives a literal, and the same one in a second process that
        has another hash seed and another clock, and takes the inputs in reverse order.

        Returns:
            One validation per draft, in order.

        Raises:
            VerifierError: the sandbox failed.
        """
        failures = [self._refuse(draft) for draft in drafts]
        fit = [draft for draft, failure in zip(drafts, failures, strict=True) if failure is None]
        results = iter(self._results(fit))
        return [Validation(None, failure) if failure else next(results) for failure in failures]

    def _refuse(self, draft: Draft) -> str | None:
        if any(canonical_arguments(text) != text for text in draft.inputs):
            return "not a literal: input"
        return screen_draft(draft, self._config)

    def _results(self, drafts: Sequence[Draft]) -> list[Validation]:
        results = self._run([self._job(draft.program, draft.inputs) for draft in drafts])
        good = [draft for draft, outcomes in zip(drafts, results, strict=True) if not _failure(outcomes)]
        repeats = iter(
            self._run([self._job(draft.program, draft.inputs[::-1]) for draft in good], again=True)
        )
        return [
            _validation(draft, outcomes, outcomes if _failure(outcomes) else next(repeats)[::-1])
            for draft, outcomes in zip(drafts, results, strict=True)
        ]

    def grade(self, answers: Sequence[tuple[Problem, str | None]]) -> list[Verdict]:
        """Judge answers; one that could not be read is None, and malformed.

        Returns:
            One verdict per answer, in order.

        Raises:
            VerifierError: the sandbox failed.
        """
        trials = [self._trial(problem, answer) for problem, answer in answers]
        jobs = [self._job(trial.program, trial.inputs) for trial in trials if isinstance(trial, Trial)]
        results = iter(self._run(jobs))
        return [_verdict(trial, next(results)) if isinstance(trial, Trial) else trial for trial in trials]

    def _trial(self, problem: Problem, answer: str | None) -> Trial | Verdict:
        """Return the run that decides an answer, or the verdict where none is needed."""
        if answer is None:
            return Verdict(False, "malformed")
        trial = tasks[problem.task].trial(problem, answer)
        if isinstance(trial, bool):
            return Verdict(True) if trial else Verdict(False, "wrong")
        if any(canonical_arguments(text) != text for text in trial.inputs):
            return Verdict(False, "malformed")
        if any(len(text) > self._config.max_literal_chars for text in trial.inputs):
            return Verdict(False, "too long")
        refusal = screen(trial.program, self._config)
        return Verdict(False, refusal) if refusal else trial

    def _job(self, program: str, inputs: tuple[str, ...]) -> Job:
        return Job(program, inputs, self._limits, tuple(self._config.banned_modules), _BANNED_NAMES)

    def _run(self, jobs: Sequence[Job], again: bool = False) -> list[tuple[Outcome, ...]]:
        """Run each distinct job once."""
        distinct = list(dict.fromkeys(jobs))
        if not distinct:
            return []
        running = self._start()
        runs = running.loop.call((running.checker if again else running.judge).run(distinct))
        found = dict(zip(distinct, runs, strict=True))
        return [found[job].outcomes for job in jobs]


@dataclass(frozen=True)
class _Running:
    """What a started verifier holds."""

    judge: ZygotePool
    checker: ZygotePool
    loop: LoopThread
    stack: ExitStack


def _report(layers: Sequence[Layer]) -> None:
    missing = [f"{layer.name} ({layer.missing})" for layer in layers if layer.missing]
    if missing:
        logger.info("the sandbox does without %s", "; ".join(missing))


async def _start(*pools: ZygotePool) -> None:
    await asyncio.gather(*(pool.start() for pool in pools))


def _failure(outcomes: Sequence[Outcome]) -> str | None:
    return next((outcome.category for outcome in outcomes if isinstance(outcome, Failure)), None)


def _validation(draft: Draft, outcomes: Sequence[Outcome], again: Sequence[Outcome]) -> Validation:
    failure = _failure(outcomes) or _failure(again)
    if failure:
        return Validation(None, failure)
    if outcomes != again:
        return Validation(None, "non-deterministic")
    outputs = tuple(outcome.text for outcome in outcomes if isinstance(outcome, Value))
    return Validation(Problem(draft.task, draft.program, draft.inputs, outputs, draft.message))


def _verdict(trial: Trial, outcomes: Sequence[Outcome]) -> Verdict:
    if outcomes == tuple(map(Value, trial.outputs)):
        return Verdict(True)
    return Verdict(False, _failure(outcomes) or "wrong")
