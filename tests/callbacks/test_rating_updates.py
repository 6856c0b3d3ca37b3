"""Ratings against TrueSkill's own environment."""

import pytest
import trueskill

from populora.callbacks import RatingUpdates
from populora.config import PopulationConfig
from populora.errors import ConfigError
from populora.population.members import Population
from populora.records import Match


def _batch(records, population, solved, chance=0.5, from_buffer=()):
    teacher, student = population.teachers[0], population.students[0]
    attempts = [records.attempt(student, correct) for correct in solved]
    attempts += [records.attempt(student, correct, from_buffer=True) for correct in from_buffer]
    return records.batch(matches=[Match(teacher, student, chance)], attempts=attempts)


@pytest.mark.parametrize(
    ("rule", "chance", "solved", "from_buffer", "winner"),
    [
        ("expected", 0.5, [True, True, True, False], [], "student"),
        ("expected", 0.9, [True, True, True, False], [], "teacher"),
        ("majority", 0.9, [True, True, True, False], [], "student"),
        ("expected", 0.5, [True, False], [], "draw"),
        ("expected", 0.5, [], [], "student"),
        ("expected", 0.5, [False, False], [True] * 8, "teacher"),
    ],
)
def test_one_update_a_match(run, records, rule, chance, solved, from_buffer, winner):
    run.finish_batch(RatingUpdates(rule), _batch(records, run.population, solved, chance, from_buffer))
    environment = trueskill.TrueSkill(25, 25 / 3, 25 / 6, 25 / 300, 0.10)
    fresh = environment.create_rating()
    first, second = trueskill.rate_1vs1(fresh, fresh, drawn=winner == "draw", env=environment)
    teacher, student = (first, second) if winner == "teacher" else (second, first)
    for name, expected in (("teacher-0", teacher), ("student-0", student)):
        assert run.population.ratings[name].mu == pytest.approx(expected.mu, abs=1e-4)
        assert run.population.ratings[name].sigma == pytest.approx(expected.sigma, abs=1e-4)
        assert run.scalars[f"rating_mu/{name}", 1] == pytest.approx(expected.mu, abs=1e-4)
        conservative = expected.mu - 3 * expected.sigma
        assert run.scalars[f"rating_conservative/{name}", 1] == pytest.approx(conservative, abs=1e-4)
    assert run.population.ratings["teacher-1"].mu == 25


def test_an_agent_that_meets_itself_keeps_its_rating(run, records):
    population = Population(PopulationConfig(1, 1, shared=True))
    run.module.population = population
    run.finish_batch(RatingUpdates(), _batch(records, population, [True]))
    assert run.scalars["rating_mu/agent-0", 1] == 25


def test_unknown_rule():
    with pytest.raises(ConfigError, match="'expected' or 'majority'"):
        RatingUpdates("best_of_three")
