"""TrueSkill ratings of the members, and what decides a match."""

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Literal

import mpmath
import trueskill

_MU, _SIGMA, _BETA, _TAU, _DRAW = 25.0, 25.0 / 3, 25.0 / 6, 25.0 / 300, 0.10
# With mpmath and digits to spare, because plain floats fail on gaps of a few hundred points.
_ENVIRONMENT = trueskill.TrueSkill(_MU, _SIGMA, _BETA, _TAU, _DRAW, backend="mpmath")


@dataclass(frozen=True)
class Rating:
    """Belief about a member's skill: a normal distribution."""

    mu: float = _MU
    sigma: float = _SIGMA

    @property
    def conservative(self) -> float:
        """Lower bound μ − 3σ by which members are ranked."""
        return self.mu - 3 * self.sigma


class Outcome(Enum):
    """Who won a match."""

    STUDENT_WINS = auto()
    TEACHER_WINS = auto()
    DRAW = auto()


def decide(
    solve_rate: float | None,
    win_probability: float,
    rule: Literal["expected", "majority"] = "expected",
) -> Outcome:
    """Decide a match from its aggregate, so that the order of attempts does not matter.

    The paper is silent on what counts as a win.

    Args:
        solve_rate: Share of correct attempts in [0, 1]; None without a valid problem, which the student wins.
        win_probability: The student's chance before the match.
        rule: ``expected`` compares the solve rate with ``win_probability``, ``majority`` with one half.
    """
    if solve_rate is None:
        return Outcome.STUDENT_WINS
    threshold = win_probability if rule == "expected" else 0.5
    if solve_rate == threshold:
        return Outcome.DRAW
    return Outcome.STUDENT_WINS if solve_rate > threshold else Outcome.TEACHER_WINS


class Ratings:
    """One TrueSkill rating a member (Herbrich, Minka and Graepel, 2007), with the standard constants.

    Args:
        names: The members.

    Example:
        >>> ratings = Ratings(["teacher-0", "student-0"])
        >>> ratings.record("teacher-0", "student-0", Outcome.STUDENT_WINS)
        >>> round(ratings["student-0"].mu, 3)
        29.396
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._ratings = {name: Rating() for name in names}

    def __getitem__(self, name: str) -> Rating:
        return self._ratings[name]

    def reset(self, name: str) -> None:
        """Give ``name`` the rating of a newcomer."""
        self._ratings[name] = Rating()

    def win_probability(self, student: str, teacher: str) -> float:
        """Return Φ((μ_s − μ_t) / √(σ_s² + σ_t² + 2β²)), the student's chance, strictly inside (0, 1)."""
        s, t = self._ratings[student], self._ratings[teacher]
        deviation = math.sqrt(s.sigma**2 + t.sigma**2 + 2 * _BETA**2)
        chance = 0.5 * math.erfc((t.mu - s.mu) / (deviation * math.sqrt(2)))
        return min(max(chance, sys.float_info.epsilon), 1 - sys.float_info.epsilon)

    def record(self, teacher: str, student: str, outcome: Outcome) -> None:
        """Update both ratings by one match; a member that met itself learns nothing."""
        if teacher == student:
            return
        winner, loser = (teacher, student) if outcome is Outcome.TEACHER_WINS else (student, teacher)
        old = [_ENVIRONMENT.create_rating(self[name].mu, self[name].sigma) for name in (winner, loser)]
        with mpmath.workdps(50):
            new = trueskill.rate_1vs1(*old, drawn=outcome is Outcome.DRAW, env=_ENVIRONMENT)
        for name, rating in zip((winner, loser), new, strict=True):
            self._ratings[name] = Rating(rating.mu, rating.sigma)

    def state_dict(self) -> dict[str, Any]:
        """Return ``{name: [mu, sigma]}``."""
        return {name: [rating.mu, rating.sigma] for name, rating in self._ratings.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what :meth:`state_dict` returned."""
        self._ratings = {name: Rating(mu, sigma) for name, (mu, sigma) in state.items()}
