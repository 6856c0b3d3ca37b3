import random
from collections import Counter

import pytest

from populora.config import PopulationConfig
from populora.population.matchmaking import match
from populora.population.members import Population


def test_every_teacher_plays_once_and_the_pool_refills_only_when_empty() -> None:
    population = Population(PopulationConfig(teachers=5, students=2))
    for seed in range(50):
        matches = match(population, random.Random(seed))
        assert sorted(m.teacher.name for m in matches) == [f"teacher-{i}" for i in range(5)]
        students = [m.student.name for m in matches]
        assert set(students[:2]) == set(students[2:4]) == {"student-0", "student-1"}


def test_students_are_drawn_by_the_variance_of_the_outcome() -> None:
    population = Population(PopulationConfig(teachers=1, students=3))
    mus = {"teacher-0": 25.0, "student-0": 25.0, "student-1": 40.0, "student-2": 5.0}
    population.ratings.load_state_dict({name: [mu, 3.0] for name, mu in mus.items()})
    chances = [population.ratings.win_probability(f"student-{i}", "teacher-0") for i in range(3)]
    weights = [p * (1 - p) for p in chances]
    rng, rounds = random.Random(0), 6000
    counts = Counter(match(population, rng)[0].student.name for _ in range(rounds))
    for i, weight in enumerate(weights):
        assert counts[f"student-{i}"] / rounds == pytest.approx(weight / sum(weights), abs=0.02)


def test_match_carries_the_win_probability_of_its_pair() -> None:
    population = Population(PopulationConfig(teachers=2, students=2))
    population.ratings.load_state_dict(
        {
            "teacher-0": [20.0, 2.0],
            "teacher-1": [30.0, 2.0],
            "student-0": [22.0, 3.0],
            "student-1": [28.0, 1.0],
        }
    )
    for m in match(population, random.Random(3)):
        assert m.win_probability == population.ratings.win_probability(m.student.name, m.teacher.name)


def test_hopeless_gaps_still_give_a_match() -> None:
    population = Population(PopulationConfig(teachers=1, students=2))
    population.ratings.load_state_dict(
        {"teacher-0": [1e5, 1.0], "student-0": [0.0, 1.0], "student-1": [0.0, 1.0]}
    )
    assert len(match(population, random.Random(0))) == 1


def test_shared_agent_meets_itself_at_even_odds() -> None:
    population = Population(PopulationConfig(teachers=1, students=1, shared=True))
    (only,) = match(population, random.Random(0))
    assert only.teacher == only.student == population["agent-0"]
    assert only.win_probability == 0.5


def test_equal_seeds_give_equal_matches() -> None:
    population = Population(PopulationConfig(teachers=4, students=4))
    assert match(population, random.Random(7)) == match(population, random.Random(7))
    assert len({match(population, random.Random(seed)) for seed in range(20)}) > 1
