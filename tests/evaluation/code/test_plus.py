"""HumanEval+ and MBPP+ on made-up items: how models are asked, and how their responses are graded."""

import pytest

from populora.errors import DataError
from populora.evaluation.code import plus
from populora.evaluation.code.plus import PlusVerdict
from populora.evaluation.suite import suites
from populora.evaluation.suites.humaneval_plus import HumanEvalPlus
from populora.evaluation.suites.mbpp_plus import MBPPPlus

ABSOLUTE = {
    "task_id": "HumanEval/900",
    "prompt": 'def distance(a: int, b: int) -> int:\n    """ How far are a and b apart?\n    """\n',
    "entry_point": "distance",
    "canonical_solution": "\n    return abs(a - b)\n",
    "base_input": [[3, 1], [5, 5]],
    "plus_input": [[1, 3], [-2, 2]],
    "atol": 0,
}
ROOT = {
    "task_id": "HumanEval/901",
    "prompt": "def find_zero(xs: list):\n",
    "entry_point": "find_zero",
    "canonical_solution": "    return -xs[0] / xs[1]\n",
    "base_input": [[[2, 1]]],
    "plus_input": [[[0.1, 0.3]]],
    "atol": 1e-4,
}
SHARED = {
    "task_id": "Mbpp/2",
    "prompt": '"""\nWrite a function to find the shared elements.\nassert shared((1, 2), (2, 3)) == (2,)\n"""\n',
    "entry_point": "shared",
    "canonical_solution": "def shared(a, b):\n    return tuple(set(a) & set(b))\n",
    "base_input": [[[1, 2], [2, 3]]],
    "plus_input": [[[1, 2, 3], [3, 2, 1]], [[], []]],
    "atol": 0,
}
GOOD = "```python\ndef distance(a, b):\n    return abs(a - b)\n```"


@pytest.fixture(autouse=True)
def _short_calls(monkeypatch):
    monkeypatch.setattr(plus, "CALL_SECONDS", 0.5)


@pytest.fixture(scope="module")
def humaneval(tmp_path_factory):
    import json

    from populora.evaluation.data import DataSource

    folder = tmp_path_factory.mktemp("benchmarks")
    (folder / "humaneval_plus.jsonl").write_text(f"{json.dumps(ABSOLUTE)}\n{json.dumps(ROOT)}\n")
    with HumanEvalPlus(DataSource(str(folder))) as suite:
        yield suite


def graded(suite, *responses, item=0):
    return suite.grade([(suite.items()[item], response) for response in responses])


def test_both_are_registered():
    assert suites["humaneval_plus"] is HumanEvalPlus
    assert suites["mbpp_plus"] is MBPPPlus


def test_a_model_that_chats_begins_a_block_and_another_goes_on_with_the_prompt(humaneval):
    item = humaneval.items()[0]
    chat, plain = humaneval.form(item, True), humaneval.form(item, False)
    assert ABSOLUTE["prompt"].strip() in chat.text
    assert chat.prefill.endswith("```python\n")
    assert chat.stop == ("\n```",)
    assert (plain.text, plain.prefill) == ("", ABSOLUTE["prompt"].strip() + "\n")
    assert {"\ndef ", "\nclass ", "\nif __name__", "\nprint("} <= set(plain.stop)


def test_the_answer_to_either_is_graded(humaneval):
    item = humaneval.items()[0]
    chat, plain = humaneval.form(item, True), humaneval.form(item, False)
    grades = graded(
        humaneval,
        chat.prefill + ABSOLUTE["prompt"] + "    return abs(a - b)\n```",
        chat.prefill + "distance = lambda a, b: max(a - b, b - a)\n```",
        plain.prefill + "    return abs(a - b)\n\ndef ",
        plain.prefill + "    return abs(a - b)\n\n\ndef other(",
        plain.prefill + "    return a - b\n",
    )
    assert [grade.correct for grade in grades] == [True, True, True, True, False]
    assert grades[0].answer == ABSOLUTE["prompt"] + "    return abs(a - b)\n"
    assert grades[4].reason == "plus: wrong at input 0"


def test_base_and_plus_are_told_apart(humaneval):
    item = humaneval.items()[0]
    programs = [
        "def distance(a, b): return abs(a - b)",
        "def distance(a, b): return a - b",
        "def distance(a, b): return b - a if b - a != -2 else 0",
        "calls = []\ndef distance(a, b): calls.append(1); return abs(a - b) + len(calls) // 2",
        "def distance(a, b): return {3: 1, 5: 0, 1: 2, -2: 4}[a]",
    ]
    assert humaneval.verdicts([(item, program) for program in programs]) == [
        PlusVerdict(),
        PlusVerdict(plus="wrong at input 0"),
        PlusVerdict(base="wrong at input 0"),
        PlusVerdict(base="wrong at input 1", plus="wrong at input 1"),
        PlusVerdict(base="wrong at input 0"),
    ]


def test_any_root_is_right(humaneval):
    item = humaneval.items()[1]
    good, near, bad = (f"def find_zero(xs): return -xs[0] / xs[1] + {error}" for error in (0, 1e-5, 0.1))
    assert [not v.base for v in humaneval.verdicts([(item, program) for program in (good, near, bad)])] == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return", "base: wrong at input 0"),
        ("raise ValueError", "base: exception: ValueError at input 0"),
        ("while True: pass", "base: timeout at input 0"),
        ("import sys; sys.exit(0)", "base: exception: SystemExit at input 0"),
        ("import os; os._exit(0)", "base: crash: no result at input 0"),
        ("return input()", "base: exception: EOFError at input 0"),
        ("import os\n    while True: os.fork()", "base: exception: PermissionError at input 0"),
        ("return 'a' * 10 ** 6", "base: wrong at input 0"),
        ("return [0] * 10 ** 10", "base: memory at input 0"),
        ("import signal, os; os.kill(os.getpid(), 9)", "base: exception: PermissionError at input 0"),
        ("return type('X', (int,), {'__eq__': lambda s, o: True})()", "base: wrong at input 0"),
        ("return type('X', (), {'__eq__': lambda s, o: True})()", "base: wrong at input 0"),
        ("return a - b\n  return", "base: syntax at input 0"),
    ],
)  # fmt: skip
def test_bad_programs_are_wrong_with_a_reason_and_disturb_nothing(humaneval, body, reason):
    bad = f"```python\ndef distance(a, b):\n    {body}\n```"
    grades = graded(humaneval, GOOD, bad, GOOD.replace("abs", " abs"))
    assert [grade.correct for grade in grades] == [True, False, True]
    assert grades[1].reason == reason


@pytest.mark.parametrize(
    "response",
    [
        "",
        "No.",
        "```cpp\nint distance(int a, int b);\n```",
        "x" * 10**6,
        "def distance(a, b) {",
        "\x00",
        "\ud800",
    ],
)
def test_bad_responses_are_wrong_with_a_reason(humaneval, response):
    good, bad = graded(humaneval, GOOD, response)
    assert good.correct
    assert not bad.correct
    assert bad.reason


def test_output_floods_are_no_result(humaneval):
    flood = "```python\ndef distance(a, b):\n    for _ in range(3000): print('x' * 1000)\n    return abs(a - b)\n```"
    assert graded(humaneval, flood)[0].correct


def test_equal_programs_run_once(humaneval, monkeypatch):
    assert graded(humaneval, GOOD)[0].correct
    counts = []
    run = humaneval._sandbox.run
    monkeypatch.setattr(humaneval._sandbox, "run", lambda jobs: counts.append(len(jobs)) or run(jobs))
    assert all(grade.correct for grade in graded(humaneval, *[GOOD.replace("abs(a", "abs( a")] * 5))
    assert [count for count in counts if count] == [1, 1]


def test_mbpp_compares_as_the_task_asks(source):
    with MBPPPlus(source("mbpp_plus.jsonl", SHARED)) as suite:
        item = suite.items()[0]
        programs = {
            "def shared(a, b): return [x for x in b if x in a] * 2": True,
            "def shared(a, b): return filter(lambda x: x in a, b)": True,
            "def shared(a, b): return (set(a) & set(b)) | {4}": False,
            "def shared(a, b): return None": False,
            "def shared(a, b): return a.intersection(b)": False,
        }
        verdicts = suite.verdicts([(item, program) for program in programs])
        assert [not (verdict.base or verdict.plus) for verdict in verdicts] == list(programs.values())
        form = suite.form(item, False)
        assert form.prefill == SHARED["prompt"]
        assert suite.grade([(item, form.prefill + next(iter(programs)) + '\n"""')])[0].correct


def test_the_hubs_form_of_both_is_read(source):
    test = (
        "import numpy as np\ndef assertion(out, exp, atol):\n    assert out == exp\n"
        "inputs = [[(1, 2), (2, 3)], [(1.5, inf), (2j,)]]\nresults = [(2,), ()]\n"
        "for i, (inp, exp) in enumerate(zip(inputs, results)):\n    assertion(shared(*inp), exp, 0.5)\n"
    )
    row = {
        "task_id": 2,
        "code": SHARED["canonical_solution"],
        "prompt": "Find.",
        "test_list": ["assert 1"],
        "test": test,
    }
    (item,) = MBPPPlus(source("mbpp_plus.jsonl", row)).items()
    assert (item.id, item.function, item.base) == ("Mbpp/2", "shared", ())
    assert item.plus == ([(1, 2), (2, 3)], [(1.5, float("inf")), (2j,)])
    assert (item.rule.as_sets, item.rule.tolerance) == (True, 0.5)
    assert item.question == '"""\nFind.\nassert 1\n"""\n'

    row = ABSOLUTE | {"test": test.replace("shared(*inp)", "candidate(*inp)")}
    del row["base_input"], row["plus_input"], row["atol"]
    (item,) = HumanEvalPlus(source("humaneval_plus.jsonl", row)).items()
    assert (item.function, len(item.plus), item.rule.tolerance) == ("distance", 2, 0.5)
    with pytest.raises(ValueError, match="one list of inputs"):
        plus.tests_of("inputs = [1]")


def test_data_of_another_benchmark_are_refused(source):
    with pytest.raises(DataError, match="humaneval_plus"):
        HumanEvalPlus(source("humaneval_plus.jsonl", {"question": "1 + 1?"})).items()
