"""Scores agree with their definitions, on one process and on two."""

import itertools
from statistics import fmean

import pytest
import torch

from populora.evaluation.metrics import SuiteScore, confidence_interval, pass_at_k


@pytest.mark.parametrize("samples", [1, 4, 7])
def test_pass_at_k_is_the_share_of_draws_with_a_right_one(samples: int) -> None:
    for right, k in itertools.product(range(samples + 1), range(1, samples + 1)):
        draws = list(itertools.combinations(range(samples), k))
        expected = fmean(any(index < right for index in draw) for draw in draws)
        assert pass_at_k(samples, right, k) == pytest.approx(expected)


def test_pass_at_k_does_not_overflow() -> None:
    assert 0 < pass_at_k(10_000, 1, 5_000) < 1
    with pytest.raises(ValueError, match="k = 3 of 2"):
        pass_at_k(2, 1, 3)


def test_interval_covers_the_normal_approximation() -> None:
    shares = [1.0] * 300 + [0.0] * 700
    low, high = confidence_interval(shares)
    assert (low, high) == pytest.approx((0.3 - 1.96 * 0.0145, 0.3 + 1.96 * 0.0145), abs=0.004)
    assert confidence_interval(shares) == (low, high)


def score_of(items: list[tuple[int, int, int, int]], metric: SuiteScore | None = None) -> SuiteScore:
    metric = metric or SuiteScore()
    for right, truncated, unanswered, tokens in items:
        metric.update(right, truncated, unanswered, tokens, samples=4)
    return metric


ITEMS = [(4, 0, 0, 40), (1, 2, 1, 400), (0, 1, 2, 80)]


def test_score_adds_up() -> None:
    score = score_of(ITEMS).score()
    assert (score.items, score.samples) == (3, 4)
    assert score.accuracy == pytest.approx(5 / 12)
    assert score.passed == pytest.approx(2 / 3)
    assert score.truncated == pytest.approx(3 / 12)
    assert score.unanswered == pytest.approx(3 / 12)
    assert score.tokens == pytest.approx(520 / 12)
    assert score.low <= score.accuracy <= score.high


def test_two_processes_score_as_one() -> None:
    other = score_of(ITEMS[1:])
    gathered = iter(
        [
            [torch.cat(other.right)],
            *([getattr(other, n)] for n in ("truncated", "unanswered", "tokens", "responses")),
        ]
    )

    def gather(value: torch.Tensor, group: object = None) -> list[torch.Tensor]:
        return [value, *next(gathered)]

    metric = score_of(ITEMS[:1])
    metric.dist_sync_fn = gather
    metric.distributed_available_fn = lambda: True
    assert metric.score() == score_of(ITEMS).score()
