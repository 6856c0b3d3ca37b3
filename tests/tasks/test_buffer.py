import json
import random
from collections import Counter
from dataclasses import replace

import pytest

from populora.errors import CheckpointError
from populora.records import Problem
from populora.tasks.buffer import ProblemBuffer


def problem(number: int, task: str = "deduction") -> Problem:
    return Problem(
        task, f"def f(x):\n    return {number}", ("1",), (str(number),), author="teacher-0", iteration=number
    )


def kept(buffer: ProblemBuffer, task: str = "deduction") -> set[int]:
    return {p.iteration for p in buffer.sample(task, 100, random.Random(0))}


def test_the_oldest_leave_and_each_task_has_its_own_room() -> None:
    buffer = ProblemBuffer(3)
    buffer.add([*(problem(n) for n in range(5)), problem(9, "abduction")])
    assert kept(buffer) == {2, 3, 4}
    assert kept(buffer, "abduction") == {9}
    assert len(buffer) == 4


def test_duplicates_are_ignored_and_do_not_get_younger() -> None:
    buffer = ProblemBuffer(3)
    buffer.add([problem(0), problem(1), problem(2), problem(0), problem(3)])
    assert kept(buffer) == {1, 2, 3}


def test_a_rediscovered_problem_stays_its_first_authors() -> None:
    buffer = ProblemBuffer(3)
    buffer.add([problem(0), replace(problem(0), author="teacher-1", iteration=8)])
    assert buffer.sample("deduction", 2, random.Random(0)) == [problem(0)]


def test_sampling_is_uniform_without_replacement_and_seeded() -> None:
    buffer = ProblemBuffer(10)
    buffer.add(problem(n) for n in range(5))
    rng = random.Random(1)
    draws = [tuple(p.iteration for p in buffer.sample("deduction", 2, rng)) for _ in range(2000)]
    assert all(len(set(draw)) == 2 for draw in draws)
    counts = Counter(number for draw in draws for number in draw)
    assert all(abs(count - 800) < 100 for count in counts.values())  # standard deviation 22
    again = random.Random(1)
    assert draws == [tuple(p.iteration for p in buffer.sample("deduction", 2, again)) for _ in range(2000)]
    assert buffer.sample("abduction", 3, rng) == []


def test_programs_are_drawn_across_tasks_each_once() -> None:
    buffer = ProblemBuffer(10)
    buffer.add([problem(0), problem(1), problem(1, "abduction"), problem(2, "induction")])
    programs = buffer.sample_programs(10, random.Random(0))
    assert sorted(p.program[-1] for p in programs) == ["0", "1", "2"]


def test_a_restored_buffer_goes_on_like_the_saved_one() -> None:
    buffer = ProblemBuffer(4)
    buffer.add([problem(n) for n in (4, 2, 3)])
    buffer.add([Problem("induction", "def f(x):\n    return x", ("1", "2"), ("1", "2"), "é\ud800")])
    restored = ProblemBuffer(4)
    restored.add([problem(99)])
    restored.load_state_dict(json.loads(json.dumps(buffer.state_dict())))
    assert kept(restored) == {2, 3, 4}
    for each in (buffer, restored):
        each.add([problem(5), problem(6)])
    assert kept(restored) == {2, 3, 5, 6}
    for task in ("deduction", "induction"):
        drawn = [each.sample(task, 3, random.Random(7)) for each in (buffer, restored)]
        assert drawn[0] == drawn[1]
        assert [p.key for p in drawn[0]] == [p.key for p in drawn[1]]


def test_a_smaller_buffer_keeps_the_newest_of_a_checkpoint() -> None:
    buffer = ProblemBuffer(5)
    buffer.add(problem(n) for n in range(5))
    smaller = ProblemBuffer(2)
    smaller.load_state_dict(buffer.state_dict())
    assert kept(smaller) == {3, 4}


@pytest.mark.parametrize("state", [{"deduction": [{"task": "deduction"}]}, {"deduction": 3}, {"deduction": [{"inputs": [], "outputs": [], "x": 1}]}])  # fmt: skip
def test_a_broken_checkpoint_is_named(state: dict[str, object]) -> None:
    buffer = ProblemBuffer(2)
    buffer.add([problem(1)])
    with pytest.raises(CheckpointError, match="problem buffer is not readable"):
        buffer.load_state_dict(state)
    assert kept(buffer) == {1}


def test_a_buffer_needs_room() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ProblemBuffer(0)
