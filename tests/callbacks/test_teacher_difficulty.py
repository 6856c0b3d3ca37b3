"""Difficulty by the base, counted by hand."""

import io

import pytest
import torch

from populora.callbacks import TeacherDifficulty
from populora.errors import ConfigError
from populora.population.members import LineageRecord


def _batch(records, population, iteration, programs):
    """One batch in which teacher-0 writes ``programs`` and teacher-1 nothing valid."""
    teacher = population["teacher-0"]
    problems = [records.problem(p, author=teacher.name, iteration=iteration) for p in programs]
    return records.batch(iteration, proposals=[records.proposal(teacher, problem) for problem in problems])


def test_the_base_attempts_the_newest_problems(run, records):
    run.solves = lambda question: question.problem.program in ("b", "c")
    callback = TeacherDifficulty(every=2, count=3, attempts=2)
    run.finish_batch(callback, _batch(records, run.population, 0, ["a", "b"]))
    assert not run.asked
    run.finish_batch(callback, _batch(records, run.population, 1, ["c", "d"]))
    assert [(q.problem.program, q.member) for q in run.asked[0]] == [("b", None), ("c", None), ("d", None)]
    assert run.sampling[0].count == 2
    assert run.scalars["difficulty/teacher-0", 2] == pytest.approx(1 / 3)
    assert run.scalars["difficulty/all", 2] == pytest.approx(1 / 3)
    assert ("difficulty/teacher-1", 2) not in run.scalars


def test_problems_of_a_former_teacher_do_not_count(run, records):
    callback = TeacherDifficulty(every=2)
    run.finish_batch(callback, _batch(records, run.population, 0, ["a"]))
    record = LineageRecord(0, "teacher-0", "copy_parent", (), ("teacher-1",), (0,), seed=1, generation=1)
    run.population.replace(record)
    run.finish_batch(callback, _batch(records, run.population, 1, ["b"]))
    assert [question.problem.program for question in run.asked[0]] == ["b"]


def test_nothing_is_asked_before_a_valid_problem(run, records):
    run.finish_batch(TeacherDifficulty(every=1), _batch(records, run.population, 0, []))
    assert not run.asked
    assert not run.scalars


def test_the_end_measures_once_more_unless_just_measured(run, records):
    callback = TeacherDifficulty(every=2)
    for iteration in range(2):
        run.finish_batch(callback, _batch(records, run.population, iteration, ["a"]))
    callback.on_train_end(run.trainer, run.module)
    assert len(run.asked) == 1
    run.finish_batch(callback, _batch(records, run.population, 2, ["b"]))
    callback.on_train_end(run.trainer, run.module)
    assert len(run.asked) == 2


def test_state_survives_a_checkpoint(run, records):
    callback = TeacherDifficulty(every=2, count=2)
    run.finish_batch(callback, _batch(records, run.population, 0, ["a", "b"]))
    file = io.BytesIO()
    torch.save(callback.state_dict(), file)
    file.seek(0)
    resumed = TeacherDifficulty(every=2, count=2)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    run.finish_batch(resumed, _batch(records, run.population, 1, ["c"]))
    assert [question.problem.program for question in run.asked[0]] == ["b", "c"]


def test_arguments():
    with pytest.raises(ConfigError, match=r"TeacherDifficulty\(count=0\)"):
        TeacherDifficulty(count=0)
