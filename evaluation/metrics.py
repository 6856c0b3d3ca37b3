"""What graded responses add up to, as a metric that is the same on one process and on many."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat
from typing_extensions import override

_RESAMPLES = 2000
_LEVEL = 0.95


@dataclass(frozen=True)
class Score:
    """How one player did in one suite; shares are in [0, 1]."""

    items: int
    samples: int
    """Responses to each item."""
    accuracy: float
    """Mean over items of the share of right responses: pass@1, and avg@k of k samples."""
    low: float
    """Lower end of the 95 % confidence interval of the accuracy over the choice of items."""
    high: float
    passed: float
    """Unbiased estimate of pass@k for k samples: at least one right."""
    truncated: float
    """Share of responses cut off at the token limit."""
    unanswered: float
    """Share of responses without an answer in them."""
    tokens: float
    """Mean length of a response."""


class SuiteScore(Metric):
    """Score over items, each with as many responses as the others."""

    full_state_update = False
    right: list[Tensor]
    truncated: Tensor
    unanswered: Tensor
    tokens: Tensor
    responses: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.add_state("right", default=[], dist_reduce_fx="cat")
        for name in ("truncated", "unanswered", "tokens", "responses"):
            self.add_state(name, default=torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")

    @override
    def update(self, right: int, truncated: int, unanswered: int, tokens: int, samples: int) -> None:
        """Count the responses to one item.

        Args:
            right: Right ones among them.
            truncated: Those cut off.
            unanswered: Those without an answer.
            tokens: Length of all together.
            samples: Their number.
        """
        self.right.append(torch.tensor([right], dtype=torch.float64))
        self.truncated += truncated
        self.unanswered += unanswered
        self.tokens += tokens
        self.responses += samples

    def score(self) -> Score:
        """Return the score over the items of all processes."""
        items, samples, *shares = self.compute()
        return Score(int(items), int(samples), *shares)

    @override
    def compute(self) -> tuple[float, ...]:
        """Return the fields of the score, for torchmetrics takes no dataclass."""
        right = dim_zero_cat(self.right).tolist()
        total = self.responses.item()
        samples = round(total / len(right))
        shares = [count / samples for count in right]
        return (
            len(right),
            samples,
            math.fsum(shares) / len(shares),
            *confidence_interval(shares),
            math.fsum(pass_at_k(samples, round(count), samples) for count in right) / len(right),
            self.truncated.item() / total,
            self.unanswered.item() / total,
            self.tokens.item() / total,
        )


def pass_at_k(samples: int, right: int, k: int) -> float:
    """Return the chance that at least one of k responses is right, estimated without bias from n ≥ k samples.

    1 − C(n−c, k) / C(n, k) as a product, which does not overflow: Chen et al. 2021, arXiv 2107.03374, section 2.1.

    Raises:
        ValueError: there are fewer than k samples.
    """
    if not 1 <= k <= samples:
        raise ValueError(f"pass@k needs 1 ≤ k ≤ samples, got k = {k} of {samples} samples")
    if samples - right < k:
        return 1.0
    return 1.0 - math.prod(1.0 - k / n for n in range(samples - right + 1, samples + 1))


def confidence_interval(shares: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % percentile-bootstrap interval of the mean over items.

    Resampling draws from a fixed seed, so equal shares give equal intervals.
    """
    values, generator = np.asarray(shares, dtype=np.float64), np.random.default_rng(0)
    means = generator.choice(values, (_RESAMPLES, len(values))).mean(axis=1)
    low, high = np.quantile(means, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return float(low), float(high)
