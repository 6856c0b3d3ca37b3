"""A suite of sums, whose data lie in a folder."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from typing_extensions import override

from populora.evaluation.data import DataSet, DataSource, Row
from populora.evaluation.suite import Decoding, Form, Grade, Item, Suite


class Sums(Suite[Item]):
    """Sums of two numbers; an answer is right when it ends with the sum."""

    name = "sums"
    title = "Sums"
    group = "mathematics"
    decoding = Decoding(max_tokens=40)
    data = DataSet("sums", "sums.jsonl", "", "someone/sums", "0" * 40, ("sums.jsonl",))
    note = ""

    @override
    def read(self, row: Row, number: int) -> Item:
        return Item(f"sum-{number}", f"{row['a']} + {row['b']} =")

    @override
    def form(self, item: Item, chat: bool) -> Form:
        return Form(item.question, prefill="It is ", stop=("\n",)) if chat else Form(item.question)

    @override
    def grade(self, answers: Sequence[tuple[Item, str]]) -> list[Grade]:
        found = []
        for item, text in answers:
            a, b = (int(word) for word in item.question.split() if word.isdigit())
            right = text.endswith(str(a + b))
            found.append(Grade(right, text.split()[-1] if text.split() else "", "" if right else "wrong"))
        return found

    @property
    @override
    def caveat(self) -> str:
        return self.note


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folder with the data of ten sums."""
    rows = [{"a": number, "b": 3} for number in range(10)]
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


@pytest.fixture
def sums(folder: Path) -> Sums:
    """The suite."""
    return Sums(DataSource(str(folder)))


@pytest.fixture
def sums_without_hidden_tests(folder: Path) -> Sums:
    """The suite with a caveat."""
    suite = Sums(DataSource(str(folder)))
    suite.note = "public tests only"
    return suite
