"""Whatever a model writes is data, all the way from the response to the buffer, the prompts and the files."""

import json
import random
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from populora.base import load_tokenizer
from populora.callbacks.problem_archive import ProblemArchive, make_centroids
from populora.callbacks.samples import fenced
from populora.config import VerifierConfig
from populora.records import Problem
from populora.tasks import Prompts, tasks
from populora.tasks.buffer import ProblemBuffer
from populora.tasks.complexity import measure
from populora.tasks.literals import arguments, canonical
from populora.tasks.screening import screen

DEEP = 5_000
ANY = st.text(st.characters(), max_size=200)
"""Every code point, lone surrogates and nulls included."""
SPECIAL = st.sampled_from(
    [
        "<think>", "</think>", "<answer>", "</answer>", "```python\n", "```input\n", "```output\n", "```message\n",
        "\n```\n", "<|im_end|>", "<|im_start|>", "<|endoftext|>", "{{ x }}", "{% for %}", "\x00", "\ud800", "\u2028",
        "\r\n", "def f(x):\n    return x", "lambda: ", "9" * DEEP, "1e" + "9" * 400, "0x" + "f" * DEEP, "[" * DEEP,
        "(" * 300 + ")" * 300, "-" * DEEP + "1", "not " * DEEP + "x", "{" * 150, "1," * DEEP, "'" * 3, '"' * 3, "\\", "#",
        "if x:\n" * 200, "x." * DEEP, "x" + "()" * 1_000, "f'{" * 100, "1j", "nan", "...", "*x", "**x", ":=",
    ]
)  # fmt: skip
RESPONSE = st.lists(ANY | SPECIAL, max_size=12).map("".join)
WHOLE = RESPONSE.map(
    lambda text: f"<think></think><answer>```python\n{text}\n```\n```input\n{text}\n```\n</answer>"
)
NAMES = ("deduction", "abduction", "induction")
REFERENCE = Problem("deduction", "def f(x):\n    return x", ("1",), ("1",))


@pytest.fixture(scope="module")
def prompts(tiny_base: Any) -> dict[str, Prompts]:
    tokenizer = load_tokenizer(tiny_base)
    return {name: Prompts.load(name, tokenizer) for name in ("base", "chat", "compact")}


@settings(deadline=None, max_examples=150)
@given(RESPONSE | WHOLE)
@example("<think></think><answer>" + "```input\n" * DEEP + "</answer>")
@example(("<answer>" * DEEP) + ("</answer>" * DEEP))
def test_any_response_can_be_read(text: str) -> None:
    for name in NAMES:
        draft = tasks[name].read_proposal(text, [REFERENCE])
        if draft is not None:
            screen(draft.program, VerifierConfig())
            assert all(len(each) <= 10_000 for each in draft.inputs)
        answer = tasks[name].read_answer(text)
        assert answer is None or isinstance(answer, str)


@settings(deadline=None, max_examples=150)
@given(RESPONSE)
def test_any_text_is_a_literal_or_not_and_a_program_or_not(text: str) -> None:
    for read in (canonical, arguments, measure):
        read(text)  # type: ignore[operator]
    found = canonical(text)
    assert found is None or canonical(found) == found


PROBLEM = st.builds(
    Problem,
    task=st.sampled_from(NAMES),
    program=RESPONSE,
    inputs=st.lists(ANY, min_size=2, max_size=3).map(tuple),
    outputs=st.lists(ANY, min_size=2, max_size=3).map(tuple),
    message=st.none() | ANY,
    author=st.none() | ANY,
)


@settings(deadline=None, max_examples=40)
@given(PROBLEM.map(lambda p: replace(p, outputs=p.outputs[:1] * len(p.inputs))))
def test_any_problem_can_be_shown_and_no_special_token_comes_of_it(
    prompts: dict[str, Prompts], problem: Problem
) -> None:
    for each in prompts.values():
        frame = len(each.encode("x"))
        for message in (
            tasks[problem.task].solve(each, problem),
            tasks[problem.task].propose(each, [problem]),
        ):
            tokens = each.encode(message)
            assert len(tokens) >= min(frame, len(message))
            assert sum(token in (0, 1, 2) for token in tokens) == sum(
                t in (0, 1, 2) for t in each.encode("x")
            )


@settings(deadline=None, max_examples=60)
@given(st.lists(PROBLEM, max_size=8), st.integers(1, 3), st.integers(0, 9))
def test_any_problem_can_be_buffered_saved_and_drawn(
    problems: list[Problem], capacity: int, seed: int
) -> None:
    buffer = ProblemBuffer(capacity)
    buffer.add(problems)
    assert len(buffer) <= capacity * len(NAMES)
    restored = ProblemBuffer(capacity)
    restored.load_state_dict(json.loads(json.dumps(buffer.state_dict())))
    for name in NAMES:
        drawn = [each.sample(name, 2, random.Random(seed)) for each in (buffer, restored)]
        assert drawn[0] == drawn[1]
    assert buffer.sample_programs(9, random.Random(seed)) == restored.sample_programs(9, random.Random(seed))


@pytest.fixture(scope="module")
def make_archive() -> Callable[[], ProblemArchive]:
    centroids = make_centroids(2, 8, 0)
    return lambda: ProblemArchive(("lines", "ast_depth"), centroids)


@settings(deadline=None, max_examples=40)
@given(st.lists(PROBLEM, max_size=6), st.floats(0, 1))
def test_any_problem_can_be_archived_and_restored(
    make_archive: Callable[[], ProblemArchive], problems: list[Problem], challenge: float
) -> None:
    archive = make_archive()
    archive.add(problems, [challenge] * len(problems))
    assert archive.filled <= 8
    restored = ProblemArchive.from_state(archive.state_dict(), archive.names, 8)
    assert (restored.qd_score, restored.filled) == (archive.qd_score, archive.filled)
    assert [asdict(e) for e in restored.elites] == [asdict(e) for e in archive.elites]


@settings(deadline=None)
@given(RESPONSE)
def test_any_text_can_be_filed(text: str) -> None:
    fenced(text).encode()
    json.dumps(text).encode("ascii")
