"""The split and its evaluation problems."""

import hashlib
import random
import time
from collections import Counter

import pytest

from populora.embedded import held_out_problems, is_held_out, starting_problems
from populora.embedded.episodes import SHOWN_PAIRS, random_episode
from populora.embedded.programs import acceptable, draw_steps, sample
from populora.tasks.literals import canonical, canonical_arguments
from populora.tasks.parsing import blocks

TASKS = ("deduction", "abduction", "induction")


def call(source: str, text: str) -> object:
    namespace: dict[str, object] = {}
    exec(source, namespace)  # noqa: S102
    return eval(f"f({text})", namespace)


def test_training_never_shows_a_held_out_program() -> None:
    rng = random.Random(3)
    programs = [
        program
        for _ in range(600)
        for episode in [random_episode(rng)]
        for text in (episode.prompt, episode.response)
        for program in blocks(text, "python")
    ]
    assert len(programs) > 600
    assert not any(map(is_held_out, programs))


def test_split_keeps_about_one_program_in_twenty() -> None:
    shares = [is_held_out(f"def f(x):\n    return x + {i}") for i in range(4000)]
    assert 0.035 < sum(shares) / len(shares) < 0.065


def test_split_ignores_blank_lines_around_a_program() -> None:
    rng = random.Random(0)
    program = sample(rng, 2, 1, held_out=True).program.source
    assert is_held_out(program)
    assert is_held_out(f"\n{program}\n")


@pytest.mark.parametrize("task", TASKS)
def test_problems_are_held_out_and_their_outputs_right(task: str) -> None:
    for problem in held_out_problems(task, 40, 5):
        assert problem.task == task
        assert is_held_out(problem.program)
        assert [repr(call(problem.program, text)) for text in problem.inputs] == list(problem.outputs)
        assert len(set(problem.inputs)) == (2 * SHOWN_PAIRS if task == "induction" else 1)
        assert (problem.message is not None) == (task == "induction")


def test_problem_texts_are_canonical_literals() -> None:
    for problem in held_out_problems("induction", 24, 1):
        assert all(canonical_arguments(text) == text for text in problem.inputs)
        assert all(canonical(text) == text for text in problem.outputs)


def test_problems_spread_over_statements_and_do_not_repeat() -> None:
    problems = held_out_problems("deduction", 80, 0)
    assert Counter(problem.statements for problem in problems) == dict.fromkeys(range(1, 9), 10)
    assert len({problem.program for problem in problems}) == 80


@pytest.mark.parametrize(
    ("task", "digest"),
    [("deduction", "ee9b2b8e856d1c59"), ("abduction", "9e4766a2aa80ee79"), ("induction", "030d4301196dc90b")],
)
def test_problems_are_the_same_everywhere(task: str, digest: str) -> None:
    text = repr([(p.program, p.inputs, p.outputs, p.message) for p in held_out_problems(task, 16, 0)])
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == digest


def test_starting_problems_are_right_and_not_held_out() -> None:
    problems = starting_problems(8)
    assert Counter(problem.task for problem in problems) == dict.fromkeys(TASKS, 8)
    for problem in problems:
        assert not is_held_out(problem.program)
        assert [repr(call(problem.program, text)) for text in problem.inputs] == list(problem.outputs)


def test_seeds_differ() -> None:
    assert held_out_problems("deduction", 8, 0) != held_out_problems("deduction", 8, 1)


def test_hundred_problems_take_little_time() -> None:
    held_out_problems("deduction", 8, 0)
    begun = time.process_time()
    held_out_problems("deduction", 100, 1)
    assert time.process_time() - begun < 3


def test_values_stay_small_all_along() -> None:
    rng = random.Random(2)
    for _ in range(200):
        item = sample(rng, draw_steps(rng), 1)
        values = [v for scope in item.traces[0].before for v in scope.values()]
        assert all(map(acceptable, [*values, item.traces[0].result])), item.program.source
