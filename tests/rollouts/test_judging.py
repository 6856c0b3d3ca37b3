"""Judging beside generation."""

import threading
from collections.abc import Iterator, Sequence

import pytest

from populora.config import EngineConfig
from populora.errors import EngineError, VerifierError
from populora.records import Completion
from populora.rollouts.engine import GenerationRequest
from populora.rollouts.judging import generate_and_judge
from populora.rollouts.scripted import ScriptedEngine

REQUESTS = [GenerationRequest((5 + i,), None, 2, 8, 1.0, seed=10 * i) for i in range(3)]


def _completion(text: str) -> Completion:
    return Completion((1,), (-0.5,), text, "stop")


class Shuffled(ScriptedEngine):
    """Finishes requests in an order of its own; waits for a judgement before the last one."""

    def __init__(self, order: Sequence[int], judged: threading.Event | None = None) -> None:
        super().__init__(EngineConfig(name="scripted"))
        self.max_model_len = 100
        self._order, self._judged = order, judged

    def _sample(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[int, tuple[Completion, ...]]]:
        for place in self._order:
            if place == self._order[-1] and self._judged is not None:
                assert self._judged.wait(30), "nothing was judged while generation went on"
            seed = requests[place].seed
            yield place, (_completion(f"{seed}"), _completion(f"{seed + 1}"))


def _nothing(done: int, total: int) -> None: ...


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_responses_keep_the_order_of_requests_whatever_finishes_first(order: Sequence[int]) -> None:
    judged = generate_and_judge(
        Shuffled(order), REQUESTS, lambda i, found: [f"{i}: {c.text}" for c in found], _nothing
    )
    found = [[(completion.text, verdict) for completion, verdict in each] for each in judged.responses]
    assert found == [
        [("0", "0: 0"), ("1", "0: 1")], [("10", "1: 10"), ("11", "1: 11")], [("20", "2: 20"), ("21", "2: 21")]
    ]  # fmt: skip


def test_the_first_responses_are_judged_before_the_last_ones_are_there() -> None:
    event = threading.Event()

    def judge(index: int, found: Sequence[Completion]) -> list[None]:
        event.set()
        return [None] * len(found)

    generate_and_judge(Shuffled((0, 1, 2), event), REQUESTS, judge, _nothing)


def test_progress_counts_responses() -> None:
    seen: list[tuple[int, int]] = []
    generate_and_judge(
        Shuffled((1, 0, 2)), REQUESTS, lambda _, found: [0] * len(found), lambda *now: seen.append(now)
    )
    assert seen == [(2, 6), (4, 6), (6, 6)]


def test_failures_of_either_side_come_out() -> None:
    def judge(index: int, found: Sequence[Completion]) -> list[None]:
        raise VerifierError("the sandbox is gone")

    with pytest.raises(VerifierError, match="the sandbox is gone"):
        generate_and_judge(Shuffled((0, 1, 2)), REQUESTS, judge, _nothing)
    stranger = [GenerationRequest((5,), "student-9", 1, 8, 1.0, seed=0)]
    with pytest.raises(EngineError, match="holds no adapter of student-9"):
        generate_and_judge(Shuffled((0,)), stranger, judge, _nothing)
