"""Held-out problems and scores."""

import json

import pytest

from populora.callbacks.held_out import load_problems, score
from populora.errors import ConfigError

LINE = {"task": "deduction", "program": "def f(x):\n    return x", "inputs": ["1"], "outputs": ["1"]}


def test_scores_by_hand(records):
    programs = ["a", "bb", "ccc", "dddd", "eeeee", "ffffff"]
    tasks = ["deduction", "abduction"] * 3
    problems = [records.problem(p, task=t) for p, t in zip(programs, tasks, strict=True)]
    by_task, by_length = score(problems, [1.0, 0.0, 0.5, 1.0, 0.0, 0.5])
    assert by_task == {"deduction": 0.5, "abduction": 0.5}
    assert by_length == {"short": 0.5, "medium": 0.75, "long": 0.25}


def test_a_file_gives_the_first_of_each_task(tmp_path):
    file = tmp_path / "problems.jsonl"
    lines = [
        LINE | {"program": f"def f(x):\n    return x + {i}", "task": task}
        for i, task in enumerate(["deduction", "abduction", "deduction", "deduction"])
    ]
    file.write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    problems = load_problems(str(file), ["abduction", "deduction"], 1, seed=0)
    assert [(p.task, p.program[-1]) for p in problems] == [("abduction", "1"), ("deduction", "0")]
    assert problems[0].inputs == ("1",)
    with pytest.raises(ConfigError, match="expected 2 problems of task abduction, the file has 1"):
        load_problems(str(file), ["abduction"], 2, seed=0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1: not JSON"),
        (json.dumps(LINE) + "\n[1]", r"line 2: expected an object with inputs, outputs, program, task"),
        (json.dumps(LINE | {"solution": "x"}), "line 1: expected an object"),
        (json.dumps({"task": "deduction"}), "line 1: expected an object"),
        (json.dumps(LINE | {"inputs": "1"}), "line 1: inputs and outputs must be lists of strings"),
    ],
)
def test_lines_that_are_no_problems(tmp_path, text, message):
    file = tmp_path / "problems.jsonl"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_problems(str(file), ["deduction"], 1, seed=0)


def test_no_such_file():
    with pytest.raises(ConfigError, match="expected 'embedded' or a JSONL file"):
        load_problems("embeded", ["deduction"], 1, seed=0)


def test_embedded_problems_are_fixed_by_their_seed():
    first = load_problems("embedded", ["deduction", "induction"], 8, seed=1)
    assert [p.task for p in first] == ["deduction"] * 8 + ["induction"] * 8
    assert first == load_problems("embedded", ["deduction", "induction"], 8, seed=1)
    assert first != load_problems("embedded", ["deduction", "induction"], 8, seed=2)
