"""Statistics against counts made by hand."""

import dataclasses

import pytest

from populora.callbacks import PopulationStatistics
from populora.records import Match


def _batch(records, population):
    t0, t1, s0, s1 = population.members
    twice = records.problem()
    once = records.problem("def f(x):\n    return x", task="abduction")
    return records.batch(
        matches=[Match(t0, s1, 0.5), Match(t1, s0, 0.5)],
        proposals=[
            records.proposal(t0, twice, reward=0.5),
            records.proposal(t0, twice, reward=0.5, completion=records.completion(tokens=9, truncated=True)),
            records.proposal(t0, failure="exception:ValueError", reward=-1.0),
            records.proposal(t1, once, match=1, reward=0.0),
            records.proposal(t1, failure="exception:KeyError", match=1, reward=-1.0),
        ],
        attempts=[
            *(records.attempt(s1, correct) for correct in (True, True, False, False)),
            *(records.attempt(s0, correct, match=1, problem=once) for correct in (True, False, False, False)),
            *(records.attempt(s0, True, match=1, from_buffer=True) for _ in range(4)),
        ],
    )


def test_rates_by_hand(run, records):
    run.module.last_update = records.update(*run.population.members)
    run.finish_batch(PopulationStatistics(), _batch(records, run.population))
    expected = {
        "valid_rate/teacher-0": 2 / 3,
        "valid_rate/teacher-1": 1 / 2,
        "valid_rate/all": 3 / 5,
        "valid_rate/abduction": 1,
        "distinct_share/teacher-0": 1 / 2,
        "distinct_share/teacher-1": 1,
        "distinct_share/all": 2 / 3,
        "solve_rate/teacher-0": 1 / 2,
        "solve_rate/teacher-1": 1 / 4,
        "solve_rate/student-0": 1 / 4,
        "solve_rate/student-1": 1 / 2,
        "solve_rate/deduction": 1 / 2,
        "solve_rate/abduction": 1 / 4,
        "solve_rate/all": 3 / 8,
        "buffer_solve_rate/all": 1,
        "proposal_reward/teacher-0": 0,
        "proposal_reward/all": -0.2,
        "proposal_tokens/teacher-0": 5,
        "proposal_truncated/teacher-0": 1 / 3,
        "proposal_failures/exception": 2,
        "attempt_failures/wrong": 5,
        "entropy/student-1": 2.0,
        "mismatch/all": 0.01,
        "flat_share/teacher-0": 0.25,
        "gradient_norm/all": 1.5,
        "kl/all": 0,
    }
    assert {tag: run.scalars[tag, 1] for tag in expected} == pytest.approx(expected)


def test_buffer_problems_never_pass_for_a_teachers_own(run, records):
    member = run.population.students[0]
    match = Match(run.population.teachers[0], member, 0.5)
    attempts = [records.attempt(member, True, from_buffer=True)]
    run.finish_batch(PopulationStatistics(), records.batch(matches=[match], attempts=attempts))
    assert ("buffer_solve_rate/student-0", 1) in run.scalars
    assert not [tag for tag, _ in run.scalars if tag.startswith("solve_rate/")]


def test_a_failure_that_no_longer_occurs_counts_zero(run, records):
    callback, teacher = PopulationStatistics(), run.population.teachers[0]
    run.finish_batch(callback, records.batch(0, proposals=[records.proposal(teacher, failure="timeout")]))
    run.finish_batch(callback, records.batch(1, proposals=[records.proposal(teacher, failure="syntax")]))
    assert run.scalars["proposal_failures/timeout", 1] == 1
    assert run.scalars["proposal_failures/timeout", 2] == 0
    assert run.scalars["proposal_failures/syntax", 2] == 1


def test_a_member_without_a_measurement_does_not_spoil_the_mean(run, records):
    measured, unmeasured = run.population.students
    update = records.update(measured, unmeasured)
    flat = dataclasses.replace(update.members[1], stepped=False, mismatch=float("nan"))
    run.module.last_update = dataclasses.replace(update, members=(update.members[0], flat))
    run.finish_batch(PopulationStatistics(), records.batch())
    assert run.scalars["mismatch/all", 1] == run.scalars["mismatch/student-0", 1] == 0.01
    assert ("mismatch/student-1", 1) not in run.scalars
    assert run.scalars["stepped/all", 1] == 0.5


def test_only_the_first_process_logs(run, records):
    run.trainer.is_global_zero = False
    run.finish_batch(PopulationStatistics(), _batch(records, run.population))
    assert not run.scalars
