"""Every suite reads local rows and the hub's, and asks models that chat and others."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from populora.errors import DataError
from populora.evaluation import suites as _all  # noqa: F401
from populora.evaluation.data import DataSource
from populora.evaluation.mathematics.suite import MathItem, MathSuite
from populora.evaluation.suite import suites

ROWS: list[tuple[str, dict[str, Any], MathItem]] = [
    ("aime24", {"id": 60, "problem": "Q", "question": "Q", "answer": "025"}, MathItem("60", "Q", "25")),
    ("aime24", {"id": 60, "problem": "Q", "solution": "so \\boxed{025}"}, MathItem("60", "Q", "25")),
    ("aime25", {"id": "2025-1", "question": "Q", "answer": "70"}, MathItem("2025-1", "Q", "70")),
    ("aime25", {"id": "0", "problem": "Q", "answer": "70"}, MathItem("0", "Q", "70")),
    ("amc23", {"id": 0, "question": "Q", "answer": 27.0}, MathItem("0", "Q", "27")),
    ("amc23", {"id": 0, "question": "Q", "answer": "27"}, MathItem("0", "Q", "27")),
    ("math500", {"unique_id": "t/1", "problem": "Q", "answer": "\\pi"}, MathItem("t/1", "Q", "\\pi")),
    ("minerva", {"idx": 3, "problem": "Q", "answer": "1.6"}, MathItem("3", "Q", "1.6", 1e-4)),
    ("minerva", {"question": "Q", "answer": "1.6"}, MathItem("0", "Q", "1.6", 1e-4)),
    ("gsm8k", {"question": "Q", "answer": "1 + 1\n#### 2,125"}, MathItem("0", "Q", "2125")),
    (
        "olympiadbench",
        {
            "id": 7, "context": "Let x be 1.", "question": "Q", "final_answer": ["$1$,$2$"], "unit": "km",
            "is_multiple_answer": True, "error": None,
        },
        MathItem(
            "7", "Let x be 1.\nQ", "$1$,$2$",
            note="There are several answers: separate them by commas. "
            "Give the answer in the unit km, without writing the unit.",
        ),
    ),
    (
        "olympiadbench",
        {
            "id": 8, "context": None, "question": "Q", "final_answer": ["20"], "unit": None,
            "is_multiple_answer": False, "error": "1e-1",
        },
        MathItem("8", "Q", "20", 0.005),
    ),
]  # fmt: skip


def written(name: str, rows: list[dict[str, Any]], folder: Path) -> DataSource:
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    file = suites[name].data.file
    (folder / file).write_bytes(gzip.compress(content) if file.endswith(".gz") else content)
    return DataSource(str(folder))


@pytest.mark.parametrize(("name", "row", "item"), ROWS)
def test_reads_rows(name: str, row: dict[str, Any], item: MathItem, tmp_path: Path) -> None:
    suite = suites[name](written(name, [row], tmp_path))
    assert list(suite.items()) == [item]


def test_a_row_of_something_else_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gsm8k: item 0 of .*gsm8k_test\.jsonl.*it has text"):
        suites["gsm8k"](written("gsm8k", [{"text": "?"}], tmp_path)).items()


def test_equal_ids_are_told(tmp_path: Path) -> None:
    row = {"id": 1, "question": "Q", "answer": "1"}
    with pytest.raises(DataError, match="two items of the same id"):
        suites["aime25"](written("aime25", [row, row], tmp_path)).items()


@pytest.mark.parametrize("name", [n for n in suites if issubclass(suites[n], MathSuite)])
def test_asks_for_a_boxed_answer_and_stops_before_another_question(name: str) -> None:
    item = MathItem("1", "How many?", "1", note="In km.")
    chat, plain = (suites[name]().form(item, chat) for chat in (True, False))
    for form in (chat, plain):
        assert "How many?" in form.text
        assert "\\boxed{}" in form.text
        assert "In km." in form.text
    assert chat.stop == ()
    assert plain.text.endswith("Answer:")
    assert plain.stop == ("\nQuestion:",)


def test_grades_what_needs_no_algebra_without_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.Popen", None)
    item = MathItem("1", "Q", "25")
    responses = ["\\boxed{025}", "\\boxed{26}", "no idea", "", "x" * 100_000, "\\boxed{" + "9" * 10**6 + "}"]
    grades = suites["aime24"]().grade([(item, response) for response in responses])
    assert [grade.correct for grade in grades] == [True, False, False, False, False, False]
    assert [grade.answer for grade in grades] == ["025", "26", "", "", "", ""]
    assert grades[0].reason == ""
    assert grades[1].reason == "wrong: expected 25"
    assert all(grade.reason.startswith("no answer") for grade in grades[2:])
