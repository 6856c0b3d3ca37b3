"""Estimators against the papers' formulas in numpy, and the two rules all of them keep."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from populora.learning.advantages import STD_FLOOR, advantages, sample_advantages
from populora.learning.samples import Sample
from populora.records import Member, Role

REWARDS = np.array([1.0, -0.5, -0.5, 1.0, 1.0, -1.0, 0.25, 0.875, 0.0, -1.0, 0.5, 0.5])
GROUPS = np.array([4, 4, 4, 9, 9, 9, 1, 1, 1, 0, 0, 0])
STRATA = np.array([0, 0, 0, 0, 0, 0, 5, 5, 5, 5, 5, 5])
ALL = sorted(advantages)


def _estimate(
    name: str, rewards: NDArray[np.float64], groups: NDArray[np.int64], strata: NDArray[np.int64]
) -> Tensor:
    return advantages[name](torch.from_numpy(rewards), torch.from_numpy(groups), torch.from_numpy(strata))


def _by_label(
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    values: NDArray[np.float64],
    labels: NDArray[np.int64],
) -> NDArray[np.float64]:
    result = np.zeros_like(values)
    for label in set(labels.tolist()):
        result[labels == label] = function(values[labels == label])
    return result


def _oracle(name: str) -> NDArray[np.float64]:
    centred = _by_label(lambda r: r - r.mean(), REWARDS, GROUPS)
    return {
        "dr_grpo": centred,
        "grpo": _by_label(lambda r: (r - r.mean()) / r.std(ddof=1), REWARDS, GROUPS),
        "reinforce_plus_plus_baseline": _by_label(lambda c: (c - c.mean()) / c.std(ddof=1), centred, STRATA),
        "task_relative": _by_label(lambda r: (r - r.mean()) / r.std(ddof=1), REWARDS, STRATA),
    }[name]


@pytest.mark.parametrize("name", ALL)
def test_formula(name: str) -> None:
    estimate = _estimate(name, REWARDS, GROUPS, STRATA)
    np.testing.assert_allclose(estimate.numpy(), _oracle(name), rtol=1e-12)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("value", [0.1, 1 / 3, -0.7, 1e6 + 0.1])
def test_a_flat_group_among_others_is_exactly_zero(name: str, value: float) -> None:
    rewards = np.concatenate([REWARDS, np.full(7, value)])
    groups = np.concatenate([GROUPS, np.full(7, 77)])
    strata = np.concatenate([STRATA, np.full(7, 5)])
    estimate = _estimate(name, rewards, groups, strata)
    assert torch.equal(estimate[-7:], torch.zeros(7, dtype=torch.float64))
    assert (estimate[:-7] != 0).any()


@pytest.mark.parametrize("name", ALL)
def test_a_stratum_of_one_reward_is_exactly_zero_even_with_one_sample_a_prompt(name: str) -> None:
    rewards, strata = np.full(7, 0.1), np.zeros(7, dtype=np.int64)
    assert not _estimate(name, rewards, np.arange(7), strata).any()


@pytest.mark.parametrize("name", ALL)
def test_float32_rewards_that_are_equal_are_exactly_zero(name: str) -> None:
    rewards = torch.full((7,), 0.1)
    labels = torch.zeros(7, dtype=torch.int64)
    assert not advantages[name](rewards, labels, labels).any()


@pytest.mark.parametrize("name", ALL)
def test_rounding_residue_is_not_blown_up(name: str) -> None:
    residue = 2.0**-23
    rewards = np.array([0.7, 0.7 + residue, 0.7, 0.7 - residue])
    labels = np.zeros(4, dtype=np.int64)
    estimate = _estimate(name, rewards, labels, labels)
    assert estimate.abs().max() <= residue / STD_FLOOR


def test_task_relative_with_one_sample_a_prompt_is_the_equation() -> None:
    estimate = _estimate("task_relative", REWARDS, np.arange(len(REWARDS)), STRATA)
    np.testing.assert_allclose(estimate.numpy(), _oracle("task_relative"), rtol=1e-12)


def test_flat_groups_count_in_the_statistics_of_whitening() -> None:
    """Two groups of two, one flat: centred (±0.75, 0, 0), std over all four √(2 · 0.75² / 3)."""
    rewards, groups = np.array([1.0, -0.5, 1.0, 1.0]), np.array([0, 0, 1, 1])
    estimate = _estimate("reinforce_plus_plus_baseline", rewards, groups, np.zeros(4, dtype=np.int64))
    expected = 0.75 / (2 * 0.75**2 / 3) ** 0.5
    np.testing.assert_allclose(estimate.numpy(), [expected, -expected, 0, 0], rtol=1e-12)


def test_members_roles_and_tasks_are_whitened_apart() -> None:
    """Each pair ±d of a (member, role, task) becomes ±1/√2 whatever its scale d."""
    agent, student = Member("agent-0", Role.AGENT), Member("student-0", Role.STUDENT)
    keys = [
        (agent, Role.TEACHER, "deduction", 1.0),
        (agent, Role.STUDENT, "deduction", 8.0),
        (agent, Role.STUDENT, "abduction", 64.0),
        (student, Role.STUDENT, "abduction", 512.0),
    ]
    samples = [
        Sample(member, role, task, group, (1,), (2,), (-1.0,), sign * scale)
        for sign in (1, -1)
        for group, (member, role, task, scale) in enumerate(keys)
    ]
    result = sample_advantages(samples, advantages["reinforce_plus_plus_baseline"])
    np.testing.assert_allclose(result.numpy(), [0.5**0.5] * 4 + [-(0.5**0.5)] * 4, rtol=1e-12)


def test_no_samples_no_advantages() -> None:
    assert sample_advantages([], advantages["grpo"]).shape == (0,)
