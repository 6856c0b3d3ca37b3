"""Responses come back from their file as they were."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from populora.errors import DataError
from populora.evaluation.responses import Asked, Response, ResponseFile
from populora.evaluation.suite import Grade

ASKED = Asked("sums", "sum-0", 0, "base", "weights", "1 + 1 =\u2028\udc80", 40, 0.0, 5)
FRESH = Response(ASKED, "two\n\x00\ud800", 3, "stop")
GRADED = Response(replace(ASKED, sample=1), "3", 1, "length", Grade(False, "3", "wrong: expected 2"))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    file = ResponseFile(tmp_path / "new" / "sums.jsonl")
    assert file.read() == []
    file.append([FRESH])
    file.append([GRADED])
    assert file.read() == [FRESH, GRADED]
    file.replace([GRADED])
    assert file.read() == [GRADED]
    record = json.loads((tmp_path / "new" / "sums.jsonl").read_text())
    assert (record["prompt"], record["text"], record["correct"]) == (ASKED.prompt, "3", False)
    assert record["reason"] == "wrong: expected 2"


def test_a_line_broken_off_is_left_out_and_written_over(tmp_path: Path) -> None:
    path = tmp_path / "sums.jsonl"
    file = ResponseFile(path)
    file.append([FRESH, GRADED])
    path.write_text(path.read_text()[:-20])
    assert file.read() == [FRESH]
    file.append([GRADED])
    assert file.read() == [FRESH, GRADED]


@pytest.mark.parametrize("line", ["nonsense", "[]", "{}", '{"suite": "sums"}'])
def test_another_file_is_told(line: str, tmp_path: Path) -> None:
    path = tmp_path / "sums.jsonl"
    path.write_text(f"{line}\n")
    with pytest.raises(DataError, match="not a file of responses"):
        ResponseFile(path).read()
