import json

import pytest

from populora.config import PopulationConfig
from populora.errors import CheckpointError
from populora.population.members import LineageRecord, Population
from populora.population.ratings import Outcome, Rating
from populora.records import Role


def record(slot: str = "student-1", iteration: int = 9) -> LineageRecord:
    return LineageRecord(
        iteration=iteration,
        slot=slot,
        operator="dare",
        parameters=(("drop_rate", 0.7), ("weight", 0.5)),
        parents=("student-0", "student-2"),
        parents_born=(0, 0),
        seed=2**32 - 1,
        generation=1,
    )


def test_slots_are_teachers_then_students() -> None:
    population = Population(PopulationConfig(teachers=2, students=3))
    names = ["teacher-0", "teacher-1", "student-0", "student-1", "student-2"]
    assert [m.name for m in population.members] == names
    assert [m.name for m in population.teachers] == names[:2]
    assert [m.name for m in population.students] == names[2:]


def test_shared_agent_is_teacher_and_student() -> None:
    population = Population(PopulationConfig(teachers=1, students=1, shared=True))
    (agent,) = population.members
    assert (agent.name, agent.role) == ("agent-0", Role.AGENT)
    assert population.teachers == population.students == (agent,)


def test_advance_counts_versions_of_one_member() -> None:
    population = Population(PopulationConfig(teachers=1, students=1))
    before = population["student-0"]
    assert population.advance("teacher-0").version == 1
    assert population["teacher-0"].version == 1
    assert population["student-0"] == before


def test_replace_moves_the_child_into_the_slot() -> None:
    population = Population(PopulationConfig(teachers=1, students=3))
    population.ratings.record("teacher-0", "student-1", Outcome.TEACHER_WINS)
    population.advance("student-1")
    child = population.replace(record())
    assert child == population["student-1"]
    assert (child.generation, child.born, child.version) == (1, 10, 2)
    assert population.ratings["student-1"] == Rating()
    assert population.ratings["teacher-0"] != Rating()
    assert population.lineage == (record(),)


def test_a_child_of_the_very_first_iteration_is_not_mistaken_for_the_founder() -> None:
    population = Population(PopulationConfig(teachers=1, students=3))
    assert population.replace(record(iteration=0)).born != 0


def test_state_survives_json() -> None:
    population = Population(PopulationConfig(teachers=1, students=3))
    population.ratings.record("teacher-0", "student-0", Outcome.STUDENT_WINS)
    population.replace(record())
    restored = Population(PopulationConfig(teachers=1, students=3))
    restored.load_state_dict(json.loads(json.dumps(population.state_dict())))
    assert restored.members == population.members
    assert restored.lineage == population.lineage
    assert all(restored.ratings[m.name] == population.ratings[m.name] for m in population.members)


def test_state_of_another_population_is_refused_by_name() -> None:
    state = Population(PopulationConfig(teachers=1, students=3)).state_dict()
    with pytest.raises(CheckpointError, match=r"missing \['teacher-1'\], unexpected \['student-2'\]"):
        Population(PopulationConfig(teachers=2, students=2)).load_state_dict(state)
