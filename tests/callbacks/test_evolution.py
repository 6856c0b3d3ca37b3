"""Evolution on a real bank, population and optimizer."""

import logging

import pytest
import torch
from transformers import AutoModelForCausalLM

from populora.callbacks import Evolution
from populora.callbacks.lineage import describe, lineage_table
from populora.config import AdapterConfig, LearningConfig, PopulationConfig
from populora.errors import ConfigError
from populora.population.bank import AdapterBank
from populora.population.evolution import EvolutionConfig, plan
from populora.population.members import LineageRecord, Population
from populora.population.optimizer import build_optimizer, moments
from populora.population.ratings import Outcome
from populora.seeding import run_seed, stream


@pytest.fixture
def evolving(run, tiny_base):
    """A run with weights: every adapter differs from every other and has moments; teacher-1 is the weakest."""
    run.population = run.module.population = Population(PopulationConfig(3, 2))
    base = AutoModelForCausalLM.from_pretrained(tiny_base)
    names = [member.name for member in run.population.members]
    run.module.bank = AdapterBank(
        base, names, AdapterConfig(rank=4, alpha=8, target_modules=["q_proj"]), seed=0
    )
    run.module.optimizer = build_optimizer(run.module.bank, LearningConfig())
    generator = torch.Generator().manual_seed(0)
    for name in names:
        for parameter in run.module.bank.parameters_of(name):
            parameter.grad = torch.randn(parameter.shape, generator=generator)
    run.module.optimizer.step()
    run.population.ratings.record("teacher-1", "student-0", Outcome.STUDENT_WINS)
    return run


def _weights(run):
    bank = run.module.bank
    return {name: [p.detach().clone() for p in bank.parameters_of(name)] for name in bank.names}


def _changed(run, before):
    after = _weights(run)
    return {name for name in before if not all(map(torch.equal, before[name], after[name]))}


def test_nothing_happens_between_two_rounds(evolving, records):
    before = _weights(evolving)
    for iteration in (0, 1, 3, 4):
        evolving.finish_batch(Evolution(interval=3), records.batch(iteration))
    assert not _changed(evolving, before)
    assert not evolving.population.lineage


def test_the_weakest_of_each_role_make_room(evolving, records, caplog):
    before = _weights(evolving)
    with caplog.at_level(logging.INFO):
        evolving.finish_batch(Evolution(interval=3, operators=["copy_parent"]), records.batch(2))
    teacher, student = sorted(evolving.population.lineage, key=lambda record: record.slot, reverse=True)
    assert teacher.slot == "teacher-1"
    assert student.slot == "student-1"
    assert student.parents == ("student-0",)
    assert _changed(evolving, before) == {"teacher-1", "student-1"}
    after = _weights(evolving)
    assert all(map(torch.equal, after["student-1"], before["student-0"]))
    assert all(map(torch.equal, after["teacher-1"], before[teacher.parents[0]]))
    child = evolving.population["teacher-1"]
    assert (child.generation, child.born, child.version) == (1, 3, 1)
    assert evolving.population.ratings["teacher-1"].mu == 25
    assert not moments(evolving.module.optimizer, "teacher-1")
    assert moments(evolving.module.optimizer, "teacher-0")
    assert [r.message for r in caplog.records] == [
        f"After iteration 3: {describe(record)}" for record in evolving.population.lineage
    ]
    assert evolving.events().Tags()["images"] == ["lineage/tree"]


def test_the_draw_depends_on_seed_and_iteration_alone(evolving, records, monkeypatch):
    monkeypatch.setenv("PL_GLOBAL_SEED", "5")
    expected = plan(
        evolving.population, stream(run_seed(), "evolution", 1), EvolutionConfig(fraction=0.5), iteration=1
    )
    evolving.finish_batch(Evolution(interval=2, fraction=0.5), records.batch(1))
    assert evolving.population.lineage == expected


def test_words():
    record = LineageRecord(9, "teacher-2", "dare", (("rate", 0.7),), ("teacher-0", "teacher-1"), (0, 0), 4, 3)
    assert describe(record) == "teacher-2 (generation 3) is dare(rate=0.7) of teacher-0 and teacher-1"
    *_, row = lineage_table([record]).splitlines()
    assert row == "| 10 | teacher-2 | 3 | dare | rate 0.7 | teacher-0, teacher-1 | 4 |"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"interval": 0}, "interval"),
        ({"fraction": 1.0}, "fraction"),
        ({"crossover_probability": 1.5}, "crossover_probability"),
        ({"operators": []}, "operators"),
        ({"operators": ["svd_pertub"]}, "did you mean 'svd_perturb'"),
    ],
)
def test_arguments(arguments, message):
    with pytest.raises(ConfigError, match=message):
        Evolution(**arguments)
