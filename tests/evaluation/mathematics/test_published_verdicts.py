"""The graders agree with published verdicts, and with every right answer of every suite."""

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from populora.evaluation import suites as _all  # noqa: F401
from populora.evaluation.data import FOLDER_VARIABLE, DataSource
from populora.evaluation.mathematics.suite import MathItem, MathSuite
from populora.evaluation.suite import suites

FOLDER = os.environ.get(FOLDER_VARIABLE)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(FOLDER is None, reason=f"{FOLDER_VARIABLE} names no folder with benchmarks"),
]


def lines(name: str) -> Iterator[dict[str, Any]]:
    path = Path(FOLDER or "") / name
    text = gzip.decompress(path.read_bytes()).decode() if name.endswith(".gz") else path.read_text()
    return map(json.loads, filter(None, text.split("\n")))


def disagreements(suite: MathSuite, cases: list[tuple[str, str, bool]]) -> list[tuple[str, str, bool]]:
    """Return those cases of right answer, response and verdict in which the suite finds otherwise."""
    with suite:
        grades = suite.grade([(MathItem("", "", gold), response) for gold, response, _ in cases])
    return [case for case, grade in zip(cases, grades, strict=True) if grade.correct != case[2]]


def test_gsm8k_solutions_of_four_models() -> None:
    cases = [
        (row["ground_truth"].rpartition("A:")[2].strip(), solution["solution"], solution["is_correct"])
        for row in lines("gsm8k_model_solutions.jsonl.gz")
        for solution in row.values()
        if isinstance(solution, dict)
    ]
    assert len(cases) == 5276
    assert disagreements(suites["gsm8k"](), cases) == []


def test_math_answers_of_a_model() -> None:
    cases = [
        (row["gt"], f"\\boxed{{{answer}}}", verdict)
        for row in lines("math_model_answers.jsonl")
        for answer, verdict in zip(row["pred"], row["score"], strict=True)
    ]
    assert len(cases) == 400
    assert disagreements(suites["math500"](), cases) == []


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("aime24", 30),
        ("aime25", 30),
        ("amc23", 40),
        ("gsm8k", 1319),
        ("math500", 500),
        ("minerva", 272),
        ("olympiadbench", 675),
    ],
)
def test_every_right_answer_is_right_and_the_next_one_wrong(name: str, count: int) -> None:
    with suites[name](DataSource(FOLDER)) as suite:
        items = list(suite.items())
        assert len(items) == count
        assert suite.origin.expected
        pairs = list(zip(items, [*items[1:], items[0]], strict=True))
        own = suite.grade([(item, f"So it is $\\boxed{{{item.answer}}}$.") for item in items])
        following = suite.grade([(item, f"\\boxed{{{other.answer}}}") for item, other in pairs])
    assert [item.answer for item, grade in zip(items, own, strict=True) if not grade.correct] == []
    equal = [
        (item.answer, other.answer)
        for (item, other), grade in zip(pairs, following, strict=True)
        if grade.correct and item.answer != other.answer
    ]
    assert equal == ([("5", "x=5")] if name == "math500" else [])
