"""The reward table of the method, section 5, case by case."""

import pytest

from populora.config import RewardConfig
from populora.learning.rewards import attempt_reward, proposal_reward
from populora.records import Verdict


@pytest.mark.parametrize(
    ("verdict", "reward"),
    [
        (Verdict(True), 1.0),
        (Verdict(False, "wrong"), -0.5),
        (Verdict(False, "timeout"), -0.5),
        (Verdict(False, "exception:ValueError"), -0.5),
        (Verdict(False, "malformed"), -1.0),
    ],
)
def test_attempt(verdict: Verdict, reward: float) -> None:
    assert attempt_reward(verdict, RewardConfig()) == reward


@pytest.mark.parametrize(
    ("valid", "solve_rate", "reward"),
    [
        (True, 1.0, 0.0),
        (True, 0.125, 0.875),
        (True, 0.5, 0.5),
        (True, 0.0, 0.0),
        (False, None, -1.0),
    ],
)
def test_proposal(valid: bool, solve_rate: float | None, reward: float) -> None:
    assert proposal_reward(valid, solve_rate, RewardConfig()) == reward


def test_unsolved_proposal_follows_the_config() -> None:
    assert proposal_reward(True, 0.0, RewardConfig(unsolved=-0.5)) == -0.5


@pytest.mark.parametrize("solve_rate", [None, -0.1, 1.1, float("nan")])
def test_valid_proposal_needs_a_solve_rate(solve_rate: float | None) -> None:
    with pytest.raises(ValueError, match=r"solve rate in \[0, 1\]"):
        proposal_reward(True, solve_rate, RewardConfig())
