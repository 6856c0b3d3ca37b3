"""Judging responses while others are still being generated."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Generic, TypeVar

from populora.records import Completion
from populora.rollouts.engine import Engine, GenerationRequest, ProgressListener

T = TypeVar("T")

Judge = Callable[[int, Sequence[Completion]], Sequence[T]]
"""(index of a request, its completions) → a judgement of each completion; runs in another thread, one call at a time."""


@dataclass(frozen=True)
class Judged(Generic[T]):
    """Responses to a batch of requests, each with its judgement, in the order of the requests."""

    responses: list[tuple[tuple[Completion, T], ...]]
    generating: float
    """Seconds until the last response was there."""
    waiting: float
    """Seconds of judging after that; the rest happened meanwhile."""


def generate_and_judge(
    engine: Engine, requests: Sequence[GenerationRequest], judge: Judge[T], on_progress: ProgressListener
) -> Judged[T]:
    """Generate for all requests in one batch, and judge the responses to each as soon as it is finished.

    The order in which requests finish decides nothing but the time it takes.

    Raises:
        EngineError: as :meth:`Engine.stream`.
        VerifierError: raised by the judge.
    """
    start = time.perf_counter()
    completions: dict[int, tuple[Completion, ...]] = {}
    judgements: dict[int, Future[Sequence[T]]] = {}
    done, total = 0, sum(request.count for request in requests)
    with ThreadPoolExecutor(1, "judge") as background, closing(engine.stream(requests)) as stream:
        for index, found in stream:
            completions[index] = found
            judgements[index] = background.submit(judge, index, found)
            done += len(found)
            on_progress(done, total)
        generated = time.perf_counter()
        responses = [
            tuple(zip(completions[i], judgements[i].result(), strict=True)) for i in range(len(requests))
        ]
    return Judged(responses, generated - start, time.perf_counter() - generated)
