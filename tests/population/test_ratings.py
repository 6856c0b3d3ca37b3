import math
import random

import pytest
from scipy.stats import norm

from populora.population.ratings import Outcome, Rating, Ratings, decide


def test_win_between_newcomers_gives_the_published_ratings() -> None:
    ratings = Ratings(["t", "s"])
    ratings.record("t", "s", Outcome.STUDENT_WINS)
    assert (ratings["s"].mu, ratings["s"].sigma) == pytest.approx((29.396, 7.171), abs=1e-3)
    assert (ratings["t"].mu, ratings["t"].sigma) == pytest.approx((20.604, 7.171), abs=1e-3)


def test_draw_between_newcomers_gives_the_published_ratings() -> None:
    ratings = Ratings(["t", "s"])
    ratings.record("t", "s", Outcome.DRAW)
    for name in ("t", "s"):
        assert (ratings[name].mu, ratings[name].sigma) == pytest.approx((25.0, 6.458), abs=1e-3)


def test_teacher_win_mirrors_student_win() -> None:
    ratings = Ratings(["t", "s"])
    ratings.record("t", "s", Outcome.TEACHER_WINS)
    assert ratings["t"].mu == pytest.approx(29.396, abs=1e-3)
    assert ratings["s"].mu == pytest.approx(20.604, abs=1e-3)


def test_conservative_rating_of_a_newcomer_is_zero() -> None:
    assert Rating().conservative == pytest.approx(0.0, abs=1e-9)
    assert Rating(30.0, 2.0).conservative == 24.0


def test_win_probability_follows_the_formula() -> None:
    ratings = Ratings(["t", "s"])
    rng = random.Random(0)
    for _ in range(50):
        mu_s, mu_t, sigma_s, sigma_t = (
            rng.uniform(5, 45),
            rng.uniform(5, 45),
            rng.uniform(1, 9),
            rng.uniform(1, 9),
        )
        ratings.load_state_dict({"t": [mu_t, sigma_t], "s": [mu_s, sigma_s]})
        deviation = math.sqrt(sigma_s**2 + sigma_t**2 + 2 * (25 / 6) ** 2)
        assert ratings.win_probability("s", "t") == pytest.approx(
            norm.cdf((mu_s - mu_t) / deviation), rel=1e-9
        )


@pytest.mark.parametrize("outcome", list(Outcome))
@pytest.mark.parametrize("gap", [-1e4, -500.0, -240.0, 240.0, 500.0, 1e4])
@pytest.mark.parametrize("sigma", [0.8, 25 / 3])
def test_extreme_gaps_neither_raise_nor_leave_the_bounds(outcome: Outcome, gap: float, sigma: float) -> None:
    ratings = Ratings(["t", "s"])
    ratings.load_state_dict({"t": [25.0, sigma], "s": [25.0 + gap, sigma]})
    assert 0 < ratings.win_probability("s", "t") < 1
    ratings.record("t", "s", outcome)
    for name in ("t", "s"):
        assert math.isfinite(ratings[name].mu)
        assert 0 < ratings[name].sigma <= math.hypot(sigma, 25 / 300) + 1e-9
    shift = ratings["s"].mu - (25.0 + gap)
    assert shift >= -1e-9 if outcome is Outcome.STUDENT_WINS else True
    assert shift <= 1e-9 if outcome is Outcome.TEACHER_WINS else True


def test_a_member_that_met_itself_learns_nothing() -> None:
    ratings = Ratings(["agent-0"])
    ratings.record("agent-0", "agent-0", Outcome.STUDENT_WINS)
    assert ratings["agent-0"] == Rating()
    assert ratings.win_probability("agent-0", "agent-0") == 0.5


def test_reset_makes_a_newcomer_of_one_member_only() -> None:
    ratings = Ratings(["t", "s"])
    ratings.record("t", "s", Outcome.STUDENT_WINS)
    student = ratings["s"]
    ratings.reset("t")
    assert ratings["t"] == Rating()
    assert ratings["s"] == student


@pytest.mark.parametrize(
    ("solve_rate", "chance", "rule", "outcome"),
    [
        (0.4, 0.3, "expected", Outcome.STUDENT_WINS),
        (0.4, 0.3, "majority", Outcome.TEACHER_WINS),
        (0.6, 0.7, "expected", Outcome.TEACHER_WINS),
        (0.6, 0.7, "majority", Outcome.STUDENT_WINS),
        (0.25, 0.25, "expected", Outcome.DRAW),
        (0.5, 0.9, "majority", Outcome.DRAW),
        (None, 0.9, "expected", Outcome.STUDENT_WINS),
        (None, 0.1, "majority", Outcome.STUDENT_WINS),
        (0.0, 0.1, "expected", Outcome.TEACHER_WINS),
    ],
)
def test_decide(solve_rate: float | None, chance: float, rule: str, outcome: Outcome) -> None:
    assert decide(solve_rate, chance, rule) is outcome
