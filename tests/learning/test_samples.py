"""From a batch's responses to samples."""

import pytest

from populora.learning.samples import Sample, roster, samples_of
from populora.records import (
    Attempt,
    Completion,
    Match,
    Member,
    Problem,
    Proposal,
    Role,
    RolloutBatch,
    Verdict,
)

AGENT = Member("agent-0", Role.AGENT)
PROBLEM = Problem("abduction", "def f(x):\n    return x", ("1",), ("1",))


def _completion(*token_ids: int) -> Completion:
    return Completion(token_ids, tuple(-0.1 * token for token in token_ids), "", "stop")


@pytest.fixture
def batch() -> RolloutBatch:
    proposal = Proposal(AGENT, "deduction", 0, 3, (7, 8), _completion(1, 2), None, "syntax", None, -1.0)
    attempt = Attempt(AGENT, PROBLEM, 0, 4, (9,), _completion(5), Verdict(True), 1.0, from_buffer=True)
    return RolloutBatch(0, (Match(AGENT, AGENT, 0.5),), (proposal,), (attempt,))


def test_an_agent_is_a_teacher_in_proposals_and_a_student_in_attempts(batch: RolloutBatch) -> None:
    proposal, attempt = samples_of(batch)
    assert proposal == Sample(AGENT, Role.TEACHER, "deduction", 3, (7, 8), (1, 2), (-0.1, -0.2), -1.0)
    assert attempt == Sample(AGENT, Role.STUDENT, "abduction", 4, (9,), (5,), (-0.5,), 1.0)


def test_roster_keeps_the_order_of_appearance() -> None:
    first, second = Member("student-1", Role.STUDENT), Member("student-0", Role.STUDENT)
    samples = [Sample(m, Role.STUDENT, "deduction", 0, (1,), (), (), 0.0) for m in (first, second, first)]
    assert roster(samples) == (first, second)


def test_a_token_without_log_probability_is_an_error() -> None:
    with pytest.raises(ValueError, match="2 completion tokens but 1 log-probabilities"):
        Sample(AGENT, Role.STUDENT, "deduction", 0, (1,), (1, 2), (-0.1,), 0.0)


def test_an_empty_prompt_is_an_error() -> None:
    with pytest.raises(ValueError, match="empty prompt"):
        Sample(AGENT, Role.STUDENT, "deduction", 0, (), (1,), (-0.1,), 0.0)
