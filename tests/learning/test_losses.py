"""The loss by hand, token by token."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from populora.config import LearningConfig
from populora.learning.losses import importance_weight, k3, policy_loss
from populora.learning.packing import MicroBatch
from populora.population.layout import Bundle, lay_out

CONFIG = LearningConfig()
NONE = torch.zeros(0, dtype=torch.int64)


def _batch(advantages: list[float], engine_logprobs: list[float], weights: list[float]) -> MicroBatch:
    return MicroBatch(
        layout=lay_out([Bundle(None, (0,), ((),))]),
        sources=NONE,
        targets=NONE,
        advantages=torch.tensor(advantages),
        engine_logprobs=torch.tensor(engine_logprobs),
        weights=torch.tensor(weights),
        members=NONE,
        sequence_tokens=len(advantages),
    )


def _leaf(values: list[float]) -> Tensor:
    return torch.tensor(values, requires_grad=True)


def test_first_update_is_reinforce_with_truncated_importance() -> None:
    """p(trainer)/p(engine) of 0.5, 1.5 and 5, the last capped at 2; the gradient of −w·c·A·log p is −w·c·A."""
    logprobs = _leaf([-1.0, -2.0, -3.0])
    engine = [-1.0 - math.log(0.5), -2.0 - math.log(1.5), -3.0 - math.log(5.0)]
    batch = _batch([2.0, -1.0, 0.5], engine, [0.25, 0.5, 0.125])
    loss, metrics = policy_loss(logprobs, batch, CONFIG)
    expected = [-0.25 * 0.5 * 2.0, -0.5 * 1.5 * -1.0, -0.125 * 2.0 * 0.5]
    assert loss.item() == pytest.approx(sum(expected), rel=1e-6)
    (gradient,) = torch.autograd.grad(loss, logprobs)
    assert gradient.tolist() == pytest.approx(expected, rel=1e-6)
    assert metrics.clipped.tolist() == [0.0, 0.0, 1.0]
    assert metrics.mismatch.tolist() == pytest.approx([math.log(2), math.log(1.5), math.log(5)], rel=1e-5)
    assert metrics.kl.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("advantage", "ratio", "surrogate", "slope"),
    [
        (1.0, 1.2, 1.2, 1.2),
        (1.0, 1.5, 1.28, 0.0),
        (1.0, 0.5, 0.5, 0.5),
        (-1.0, 0.9, -0.9, -0.9),
        (-1.0, 0.5, -0.8, 0.0),
        (-1.0, 1.5, -1.5, -1.5),
    ],
)
def test_later_updates_are_clipped_on_the_side_that_gains(
    advantage: float, ratio: float, surrogate: float, slope: float
) -> None:
    logprobs = _leaf([-1.0])
    old = torch.tensor([-1.0 - math.log(ratio)])
    loss, metrics = policy_loss(logprobs, _batch([advantage], old.tolist(), [1.0]), CONFIG, old)
    (gradient,) = torch.autograd.grad(loss, logprobs)
    assert -loss.item() == pytest.approx(surrogate, rel=1e-6)
    assert -gradient.item() == pytest.approx(slope, rel=1e-6, abs=1e-9)
    assert metrics.clipped.item() == float(slope == 0.0)


def test_importance_compares_the_engine_with_the_old_policy_not_the_new() -> None:
    logprobs, old = _leaf([-1.0]), torch.tensor([-1.1])
    loss, _ = policy_loss(logprobs, _batch([1.0], [-1.1 - math.log(1.5)], [1.0]), CONFIG, old)
    assert -loss.item() == pytest.approx(1.5 * math.exp(0.1), rel=1e-6)


@pytest.mark.parametrize(
    ("gap", "weight"), [(-0.5, math.exp(-0.5)), (0.6, math.exp(0.6)), (1.0, 2.0), (1000.0, 2.0)]
)
def test_importance_weight_is_truncated_from_above_only(gap: float, weight: float) -> None:
    assert importance_weight(torch.tensor([gap]), torch.zeros(1), 2.0).item() == pytest.approx(
        weight, rel=1e-6
    )


def test_a_log_ratio_beyond_20_is_clamped_not_infinite() -> None:
    weight = importance_weight(torch.tensor([-1000.0, 1000.0]), torch.zeros(2), math.inf)
    assert weight.tolist() == pytest.approx([math.exp(-20), math.exp(20)], rel=1e-5)


def test_k3_by_hand_and_its_mean_is_the_kl() -> None:
    """k3 = q/p − 1 − log(q/p); averaged under p it is KL(p ‖ q)."""
    p, q = torch.tensor([0.7, 0.2, 0.1]), torch.tensor([0.3, 0.3, 0.4])
    estimate = k3(p.log(), q.log())
    torch.testing.assert_close(estimate, q / p - 1 - (q / p).log())
    assert (p * estimate).sum().item() == pytest.approx((p * (p / q).log()).sum().item(), rel=1e-5)


def test_kl_term_enters_with_its_weight_and_gradient() -> None:
    """d/d log p of k3 is 1 − q/p."""
    logprobs, reference = _leaf([-1.0, -2.0]), torch.tensor([-1.5, -1.0])
    batch = _batch([0.0, 0.0], [-1.0, -2.0], [0.25, 0.75])
    loss, metrics = policy_loss(logprobs, batch, replace(CONFIG, kl_weight=0.1), None, reference)
    (gradient,) = torch.autograd.grad(loss, logprobs)
    ratios = [math.exp(-0.5), math.exp(1.0)]
    kl = [ratios[0] - 1 + 0.5, ratios[1] - 1 - 1.0]
    assert metrics.kl.tolist() == pytest.approx(kl, rel=1e-5)
    assert loss.item() == pytest.approx(0.1 * (0.25 * kl[0] + 0.75 * kl[1]), rel=1e-5)
    expected = [0.1 * 0.25 * (1 - ratios[0]), 0.1 * 0.75 * (1 - ratios[1])]
    assert gradient.tolist() == pytest.approx(expected, rel=1e-5)
