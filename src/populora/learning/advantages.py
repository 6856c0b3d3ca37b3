"""Advantage estimators without a critic, chosen by name from the config.

An estimator sees the samples of *one member*: rewards (N,), groups (N,) and strata (N,), where responses to the same
prompt share a group and responses of the same role and task type share a stratum. It returns advantages (N,).

All estimators here keep two rules. A *flat* group, two or more responses with exactly equal rewards, says nothing about
which response is better and gets advantage exactly 0: equality is tested on the rewards, never on a computed
deviation, and the zeros are set last, so whitening cannot shift them (flat groups do count in its statistics).
A standard deviation (unbiased, as in TRL and verl) is never taken below ``STD_FLOOR``, so rounding residue is not
blown up into a signal.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from populora.learning.samples import Sample
from populora.registry import Registry

Estimator = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(rewards (N,), groups (N,) int64, strata (N,) int64) of one member → advantages (N,)."""

STD_FLOOR = 1e-3
"""Far above rounding residue, far below the deviation that one attempt among eight makes (about 0.04 of a solve rate)."""

advantages: Registry[Estimator] = Registry("advantage estimator")


@advantages.register("grpo")
def grpo(rewards: Tensor, groups: Tensor, strata: Tensor) -> Tensor:
    """(r − mean of the group) / std of the group: DeepSeekMath, arXiv 2402.03300, section 4.1.2."""
    centred = rewards - _mean(rewards, groups)
    return _silence(centred / _std(rewards, groups), flat(rewards, groups))


@advantages.register("dr_grpo")
def dr_grpo(rewards: Tensor, groups: Tensor, strata: Tensor) -> Tensor:
    """r − mean of the group, without the std that favours too easy and too hard prompts: arXiv 2503.20783.

    Dr. GRPO's other change, no division by the response's own length, holds for every estimator here: the loss
    is a token-level mean.
    """
    return _silence(rewards - _mean(rewards, groups), flat(rewards, groups))


@advantages.register("reinforce_plus_plus_baseline")
def reinforce_plus_plus_baseline(rewards: Tensor, groups: Tensor, strata: Tensor) -> Tensor:
    """Centre per group, then divide by the std over the stratum: REINFORCE++-baseline, arXiv 2501.03262; the paper's.

    The statistics are per sample. Whitening needs no second mean: centred rewards of whole groups sum to zero.
    """
    centred = rewards - _mean(rewards, groups)
    return _silence(centred / _std(centred, strata), flat(rewards, groups))


@advantages.register("task_relative")
def task_relative(rewards: Tensor, groups: Tensor, strata: Tensor) -> Tensor:
    """(r − mean) / std over the stratum, no baseline per prompt: TRR++, Absolute Zero, arXiv 2505.03335, equation 8.

    The statistics are per sample as in the equation (the authors' code weighs by tokens). With one response a prompt,
    as Absolute Zero samples, it is the equation itself; with several, flat groups are zero as everywhere.
    """
    centred = rewards - _mean(rewards, strata)
    return _silence(centred / _std(rewards, strata), flat(rewards, groups) | flat(rewards, strata))


def sample_advantages(samples: Sequence[Sample], estimator: Estimator) -> Tensor:
    """Apply an estimator to each member's samples separately.

    Returns:
        Advantages (N,), float64, in the order of ``samples``.
    """
    result = torch.zeros(len(samples), dtype=torch.float64)
    rewards = torch.tensor([sample.reward for sample in samples], dtype=torch.float64)
    groups = torch.tensor([sample.group for sample in samples], dtype=torch.int64)
    strata = _labels([(sample.role, sample.task) for sample in samples])
    members = _labels([sample.member.name for sample in samples])
    for member in range(int(members.max()) + 1 if samples else 0):
        own = members == member
        result[own] = estimator(rewards[own], groups[own], strata[own]).double()
    return result


def flat(rewards: Tensor, labels: Tensor) -> Tensor:
    """Return (N,) bool: whether a sample's label is shared by two or more samples, all with exactly the same reward."""
    index, count = _index(labels)
    lowest = rewards.new_zeros(len(count)).scatter_reduce(0, index, rewards, "amin", include_self=False)
    highest = rewards.new_zeros(len(count)).scatter_reduce(0, index, rewards, "amax", include_self=False)
    return ((lowest == highest) & (count > 1))[index]


def _silence(values: Tensor, mask: Tensor) -> Tensor:
    return values.masked_fill(mask, 0.0)


def _mean(values: Tensor, labels: Tensor) -> Tensor:
    """Mean over each label, given back to its samples: (N,) → (N,)."""
    index, count = _index(labels)
    return (values.new_zeros(len(count)).index_add(0, index, values) / count)[index]


def _std(values: Tensor, labels: Tensor) -> Tensor:
    """Unbiased std over each label with a floor, given back to its samples: (N,) → (N,)."""
    index, count = _index(labels)
    squares = (values - _mean(values, labels)).square()
    variance = values.new_zeros(len(count)).index_add(0, index, squares) / (count - 1).clamp(min=1)
    return variance.sqrt().clamp(min=STD_FLOOR)[index]


def _index(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Number the labels from 0: index (N,) and count of each."""
    _, index, count = torch.unique(labels, return_inverse=True, return_counts=True)
    return index, count


def _labels(keys: Sequence[object]) -> Tensor:
    """Number hashable keys in order of first appearance: (N,) int64."""
    numbers: dict[object, int] = {}
    return torch.tensor([numbers.setdefault(key, len(numbers)) for key in keys], dtype=torch.int64)
