import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable

import pytest
import torch

from populora.config import PopulationConfig
from populora.errors import ConfigError
from populora.population.bank import AdapterBank
from populora.population.evolution import EvolutionConfig, breed, plan
from populora.population.members import Population
from populora.population.operators import operators
from populora.records import Role


def ranked_population(teachers: int, students: int) -> Population:
    """Members in ascending order of rating within their role; equal σ."""
    population = Population(PopulationConfig(teachers=teachers, students=students))
    population.ratings.load_state_dict({m.name: [20.0 + int(m.name[-1]), 2.0] for m in population.members})
    return population


@pytest.mark.parametrize(
    ("size", "fraction", "replaced"),
    [
        (1, 0.9, 0),
        (2, 0.25, 1),
        (4, 0.25, 1),
        (8, 0.25, 2),
        (7, 0.25, 1),
        (8, 0.5, 4),
        (2, 0.99, 1),
        (10, 0.3, 3),
    ],
)
def test_number_replaced_in_each_role(size: int, fraction: float, replaced: int) -> None:
    population = ranked_population(size, size)
    records = plan(population, random.Random(0), EvolutionConfig(fraction=fraction), iteration=9)
    slots = Counter(population[record.slot].role for record in records)
    assert slots == Counter({Role.TEACHER: replaced, Role.STUDENT: replaced})


def test_shared_agent_is_never_replaced() -> None:
    population = Population(PopulationConfig(teachers=1, students=1, shared=True))
    assert plan(population, random.Random(0), EvolutionConfig(), iteration=9) == ()


def test_the_lowest_go_and_survivors_of_the_same_role_are_parents() -> None:
    population = ranked_population(8, 4)
    for seed in range(30):
        records = plan(population, random.Random(seed), EvolutionConfig(), iteration=9)
        assert {record.slot for record in records} == {"teacher-0", "teacher-1", "student-0"}
        for record in records:
            role, doomed = record.slot.split("-")[0], {r.slot for r in records}
            assert all(parent.startswith(role) and parent not in doomed for parent in record.parents)
            assert len(set(record.parents)) == operators[record.operator].arity


def test_ranking_is_by_the_conservative_rating() -> None:
    population = ranked_population(1, 2)
    population.ratings.load_state_dict(
        {"teacher-0": [25.0, 1.0], "student-0": [20.0, 1.0], "student-1": [30.0, 8.0]}
    )
    (record,) = plan(population, random.Random(0), EvolutionConfig(), iteration=9)
    assert record.slot == "student-1"


def test_ties_are_broken_at_random() -> None:
    population = Population(PopulationConfig(teachers=1, students=4))
    slots = {plan(population, random.Random(s), EvolutionConfig(), 9)[0].slot for s in range(60)}
    assert slots == {f"student-{i}" for i in range(4)}


def test_operators_and_parents_are_drawn_uniformly() -> None:
    population, rng = ranked_population(1, 4), random.Random(0)
    records = [plan(population, rng, EvolutionConfig(), 9)[0] for _ in range(4000)]
    counts = Counter(record.operator for record in records)
    assert counts.keys() == set(EvolutionConfig().operators)
    assert all(count / 4000 == pytest.approx(1 / 8, abs=0.025) for count in counts.values())
    mutants = [r for r in records if len(r.parents) == 1]
    parents = Counter(record.parents[0] for record in mutants)
    assert all(count / len(mutants) == pytest.approx(1 / 3, abs=0.04) for count in parents.values())
    orders = Counter(record.parents for record in records if record.operator == "svd_subspace")
    assert len(orders) == 6, "both orders of each pair"


def test_extrapolation_goes_towards_the_fitter_parent() -> None:
    population, config = (
        ranked_population(1, 6),
        EvolutionConfig(crossover_probability=1.0, operators=["extrapolate"]),
    )
    for seed in range(40):
        (record,) = plan(population, random.Random(seed), config, 9)
        weaker, fitter = (population.ratings[name].conservative for name in record.parents)
        assert weaker < fitter


def test_crossover_needs_two_survivors() -> None:
    population = ranked_population(1, 2)
    for seed in range(30):
        (record,) = plan(population, random.Random(seed), EvolutionConfig(crossover_probability=1.0), 9)
        assert record.parents == ("student-1",)
    with pytest.raises(ConfigError, match=r"\['dare'\] works with 1 surviving"):
        plan(population, random.Random(0), EvolutionConfig(operators=["dare"]), 9)


def test_crossover_probability_is_kept() -> None:
    population, rng = ranked_population(1, 4), random.Random(1)
    config = EvolutionConfig(crossover_probability=0.2)
    crossings = sum(len(plan(population, rng, config, 9)[0].parents) == 2 for _ in range(2000))
    assert crossings / 2000 == pytest.approx(0.2, abs=0.03)


def test_plan_is_pure_and_repeatable() -> None:
    population = ranked_population(4, 4)
    before = population.state_dict()
    assert plan(population, random.Random(5), EvolutionConfig(), 9) == plan(
        population, random.Random(5), EvolutionConfig(), 9
    )
    assert population.state_dict() == before


def test_record_names_the_child_s_descent() -> None:
    population = ranked_population(1, 3)
    for _ in range(3):
        (record,) = plan(population, random.Random(2), EvolutionConfig(), 9)
        population.replace(record)
        population.ratings.load_state_dict(
            {m.name: [20.0 + int(m.name[-1]), 2.0] for m in population.members}
        )
    (record,) = plan(population, random.Random(0), EvolutionConfig(), 39)
    assert record.iteration == 39
    assert record.parents_born == tuple(population[name].born for name in record.parents)
    assert record.generation == 1 + max(population[name].generation for name in record.parents)
    assert record.parameters == operators[record.operator]().parameters


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"interval": 0}, "interval must be at least 1, got 0"),
        ({"fraction": 1.0}, r"fraction must be in \(0, 1\), got 1.0"),
        ({"fraction": 0.0}, r"fraction must be in \(0, 1\), got 0.0"),
        ({"crossover_probability": 1.5}, "crossover_probability must be in"),
        ({"operators": []}, "at least one operator"),
    ],
)
def test_settings_out_of_bounds_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        EvolutionConfig(**settings)


def test_unknown_operators_are_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'dare'"):
        plan(ranked_population(1, 3), random.Random(0), EvolutionConfig(operators=["dar"]), 9)


@pytest.mark.parametrize("name", list(operators))
def test_child_can_be_computed_again_from_the_record(name: str, make_bank: Callable[[], AdapterBank]) -> None:
    bank, again = make_bank(), make_bank()
    population = ranked_population(1, 4)
    config = EvolutionConfig(operators=[name])
    (record,) = plan(population, random.Random(0), config, 9)
    record = type(record)(
        **{
            **record.__dict__,
            "slot": "student-0",
            "parents": ("teacher-0", "teacher-1")[: len(record.parents)],
        }
    )
    untouched = {other: bank.read(other) for other in ("teacher-0", "teacher-1")}
    assert breed(record, bank) == record
    child = bank.read("student-0")

    restored = Population(PopulationConfig(teachers=1, students=4))
    population.replace(record)
    restored.load_state_dict(json.loads(json.dumps(population.state_dict())))
    torch.manual_seed(99)
    breed(restored.lineage[0], again)
    for path, update in again.read("student-0").items():
        assert torch.equal(update.a, child[path].a)
        assert torch.equal(update.b, child[path].b)
    for other, adapter in untouched.items():
        assert all(torch.equal(bank.read(other)[path].b, update.b) for path, update in adapter.items())


def test_config_needs_no_torch() -> None:
    code = "import populora.population.evolution, sys; raise SystemExit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
