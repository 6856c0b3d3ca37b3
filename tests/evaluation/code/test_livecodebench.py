"""LiveCodeBench on made-up problems: scripts and methods, public tests and all."""

import base64
import json
import pickle
import zlib

import pytest

from populora.evaluation.suites import livecodebench
from populora.evaluation.suites.livecodebench import LiveCodeBench


def problem(name, tests, starter="", function="", **more):
    return {
        "question_id": name,
        "question_content": f"Solve {name}.",
        "starter_code": starter,
        "metadata": json.dumps({"func_name": function} if function else {}),
        "public_test_cases": json.dumps([{"input": i, "output": o, "testtype": "stdin"} for i, o in tests]),
        **more,
    }


DOUBLE = problem("double", [("3\n", "6\n"), ("-1\n", "-2\n")])
PAIRS = problem(
    "pairs",
    [('[1, 2]\n"ab"', '[[1, "a"], [2, "b"]]'), ('[]\n""', "[]")],
    "class Solution:\n    def pairs(self, xs: List[int], s: str) -> List[List]:\n        ",
    "pairs",
)


@pytest.fixture
def suite(source, monkeypatch):
    monkeypatch.setattr(livecodebench, "_SECONDS", 1.0)
    with LiveCodeBench(source("livecodebench_v5_public.jsonl", DOUBLE, PAIRS)) as suite:
        yield suite


def graded(suite, number, *responses):
    item = suite.items()[number]
    return suite.grade([(item, response) for response in responses])


def test_scripts(suite):
    grades = graded(
        suite,
        0,
        "```python\nprint(2 * int(input()))\n```",
        "print(int(stdin.readline()) * 2)",
        "n = int(input())\nif __name__ == '__main__':\n    print('%.1f ' % (n * 2))\n",
        "print(6 if int(input()) == 3 else 2)",
        "print(input())\ninput()",
        "print('six')",
        "while True: pass",
    )
    assert [grade.correct for grade in grades] == [True, True, True, False, False, False, False]
    assert [grade.reason for grade in grades[3:]] == [
        "wrong at test 1",
        "exception: EOFError at test 0",
        "wrong at test 0",
        "timeout at test 0",
    ]


def test_methods(suite):
    body = "    def pairs(self, xs: List[int], s):\n        return"
    grades = graded(
        suite,
        1,
        f"```python\nclass Solution:\n{body} [[x, c] for x, c in zip(xs, s)]\n```",
        f"class Solution:\n{body} tuple([x, c] for x, c in zip(xs, s))\n",
        "def pairs(xs, s): return [[x, c] for x, c in zip(xs, s)]",
        f"class Solution:\n{body} [(x, c) for x, c in zip(xs, s)]\n",
        "class Solution:\n    def pair(self, xs, s): return []",
        f"class Solution:\n{body} [[1, 'a'], [2, 'b']]\n",
    )
    assert [grade.correct for grade in grades] == [True, True, True, False, False, False]
    assert grades[5].reason == "wrong at test 1"


def test_the_class_is_what_a_block_has_to_define(suite):
    response = (
        "```python\nclass Solution:\n    def pairs(self, xs, s): return [list(p) for p in zip(xs, s)]\n```\n"
        "Try it:\n```python\nprint(Solution().pairs([1], 'a'))\n```"
    )
    assert graded(suite, 1, response)[0].correct


def test_models_are_told_where_the_input_is(suite):
    script, method = (suite.form(item, True) for item in suite.items())
    assert "stdin" in script.text
    assert "Solve double." in script.text
    assert PAIRS["starter_code"] in method.text
    assert suite.form(suite.items()[0], False).prefill == "```python\n"


def test_public_tests_alone_are_called_so(suite, source, tmp_path):
    assert suite.caveat == "public tests only"
    tests = json.dumps([{"input": "0", "output": "0", "testtype": "stdin"}])
    packed = base64.b64encode(zlib.compress(pickle.dumps(tests))).decode()
    rows = [DOUBLE | {"private_test_cases": text} for text in (tests, packed)]
    rows[1]["question_id"] = "packed"
    with LiveCodeBench(source("livecodebench_v5_public.jsonl", *rows)) as whole:
        assert whole.caveat == ""
        for item in whole.items():
            assert [test.input for test in item.tests] == ["3\n", "-1\n", "0"]
        program = "n = int(input())\nprint(n * 2 if n else 1)"
        assert whole.grade([(whole.items()[1], program)])[0].reason == "wrong at test 2"


class Evil:
    def __reduce__(self):
        return print, ("ran",)


def test_packed_tests_run_no_code(source, capsys):
    packed = base64.b64encode(zlib.compress(pickle.dumps(Evil()))).decode()
    suite = LiveCodeBench(source("livecodebench_v5_public.jsonl", DOUBLE | {"private_test_cases": packed}))
    with pytest.raises(pickle.UnpicklingError):
        _ = suite.items()[0].tests
    assert capsys.readouterr().out == ""
