"""Evaluation with answers decided by the test."""

import io
import json

import pytest
import torch

from populora.callbacks import PopulationEvaluation
from populora.errors import ConfigError
from populora.population.members import LineageRecord

COUNT = 6


@pytest.fixture
def problems(tmp_path):
    file = tmp_path / "held_out.jsonl"
    lines = [
        {
            "task": task,
            "program": "def f(x):\n    return x" + f" + {i}" * i,
            "inputs": ["1"],
            "outputs": ["1"],
        }
        for task in ("deduction", "abduction")
        for i in range(COUNT)
    ]
    file.write_text("\n".join(map(json.dumps, lines)))
    return {"problems": str(file), "tasks": ("deduction", "abduction"), "count": COUNT}


def _solves(question):
    """student-0 solves deduction, student-1 everything, the base short programs, teachers nothing."""
    return {
        "student-0": question.problem.task == "deduction",
        "student-1": True,
        None: len(question.problem.program) < 38,
    }.get(question.member, False)


def _born_again(run, slot, iteration):
    run.population.replace(
        LineageRecord(iteration, slot, "copy_parent", (), ("student-0",), (0,), seed=1, generation=1)
    )


def test_before_training_only_the_base_answers_and_members_equal_it(run, problems):
    run.solves = _solves
    callback = PopulationEvaluation(**problems, attempts=3, temperature=0.5, seed=9)
    callback.on_train_start(run.trainer, run.module)
    assert [question.member for question in run.asked[0]] == [None] * 2 * COUNT
    sampling = run.sampling[0]
    assert (sampling.count, sampling.max_tokens, sampling.temperature, sampling.seed) == (3, 77, 0.5, 9)
    share = sum(len(p.problem.program) < 38 for p in run.asked[0][:COUNT]) / COUNT
    assert 0 < share < 1
    for name in ("base", "student-0", "student-1"):
        assert run.scalars[f"heldout/deduction/{name}", 0] == share
        assert run.scalars[f"heldout/mean/{name}", 0] == share
    assert run.scalars["heldout_length/short/base", 0] == 1
    assert run.scalars["heldout_length/long/base", 0] == 0


def test_students_answer_in_one_batch_every_few_iterations(run, records, problems):
    run.solves = _solves
    callback = PopulationEvaluation(every=2, **problems)
    callback.on_train_start(run.trainer, run.module)
    for iteration in range(4):
        run.finish_batch(callback, records.batch(iteration))
    asked = [[question.member for question in batch] for batch in run.asked[1:]]
    assert asked == [["student-0"] * 2 * COUNT + ["student-1"] * 2 * COUNT] * 2
    assert run.scalars["heldout/deduction/student-0", 2] == 1
    assert run.scalars["heldout/abduction/student-0", 2] == 0
    assert run.scalars["heldout/mean/student-0", 4] == 0.5
    assert run.scalars["heldout/mean/student-1", 4] == 1
    assert [event.step for event in run.events().Images("heldout")] == [0, 2, 4]


def test_at_the_end_only_those_without_a_score_answer(run, records, problems):
    callback = PopulationEvaluation(every=2, **problems)
    callback.on_train_start(run.trainer, run.module)
    for iteration in range(2):
        run.finish_batch(callback, records.batch(iteration))
    callback.on_train_end(run.trainer, run.module)
    assert len(run.asked) == 2
    _born_again(run, "student-1", iteration=1)
    callback.on_train_end(run.trainer, run.module)
    assert {question.member for question in run.asked[2]} == {"student-1"}


def test_a_child_does_not_inherit_the_score_of_its_slot(run, records, problems):
    run.solves = _solves
    callback = PopulationEvaluation(every=1, **problems)
    callback.on_train_start(run.trainer, run.module)
    run.finish_batch(callback, records.batch(0))
    assert callback.latest(run.population["student-1"]).mean == 1
    _born_again(run, "student-1", iteration=0)
    assert callback.latest(run.population["student-1"]) is None
    assert callback.latest(run.population["student-0"]).mean == 0.5


def test_a_resumed_run_keeps_its_scores(run, records, problems):
    run.solves = _solves
    callback = PopulationEvaluation(every=1, **problems)
    callback.on_train_start(run.trainer, run.module)
    run.finish_batch(callback, records.batch(0))
    file = io.BytesIO()
    torch.save(callback.state_dict(), file)
    file.seek(0)
    resumed = PopulationEvaluation(every=1, **problems)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    assert resumed.scores == callback.scores
    resumed.on_train_start(run.trainer, run.module)
    assert len(run.asked) == 2


def test_a_callback_added_later_asks_the_base_too(run, records, problems):
    callback = PopulationEvaluation(every=1, **problems, members="all")
    run.module.iteration = 7
    callback.on_train_start(run.trainer, run.module)
    assert not run.asked
    run.finish_batch(callback, records.batch(7))
    members = {question.member for question in run.asked[0]}
    assert members == {None, "teacher-0", "teacher-1", "student-0", "student-1"}


def test_validate_evaluates_and_fit_does_not_evaluate_in_its_validation(run, problems):
    callback = PopulationEvaluation(**problems)
    run.module.iteration = 3
    callback.on_validation_end(run.trainer, run.module)
    assert not run.asked
    run.trainer.validating = True
    callback.on_validation_end(run.trainer, run.module)
    assert len(run.asked) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"every": 0}, "every=…"),
        ({"attempts": 0}, "attempts=…"),
        ({"tasks": []}, "tasks=…"),
        ({"temperature": -1.0}, "0 or more"),
        ({"members": "teachers"}, "'students' or 'all'"),
    ],
)
def test_arguments(problems, arguments, message):
    with pytest.raises(ConfigError, match=message):
        PopulationEvaluation(**problems | arguments)
