"""CRUXEval: asked in the words of training, read leniently, judged by the verifier."""

import pytest

from populora.evaluation.code.literals import find_arguments, find_output
from populora.evaluation.suites.cruxeval import CRUXEvalI, CRUXEvalO

ROW = {"id": "sample_0", "code": "def f(xs):\n    return sorted(xs)", "input": "[3, 1]", "output": "[1, 3]"}


@pytest.mark.parametrize(
    ("response", "output"),
    [
        ("<think>hm</think>\n<answer>\n```output\n[1, 3]\n```\n</answer>", "[1, 3]"),
        ("hm</think><answer>```output\n[0]\n```</answer><answer>\n```output\n[1,3]\n```", "[1, 3]"),
        ("<answer>[1, 3]</answer>", "[1, 3]"),
        ("<answer>f([3, 1]) == [1, 3]</answer>", "[1, 3]"),
        ("[ANSWER]assert f([3, 1]) == [1, 3][/ANSWER]", "[1, 3]"),
        ("It is sorted.\n```python\n[1, 3]\n```", "[1, 3]"),
        ("[1, 3]", "[1, 3]"),
        ("<think>\n```output\n[1]\n```", "[1]"),
        ("<answer>```output\nsorted([3, 1])\n```</answer>", None),
        ("<think>It starts with [1, 3]\nand so on", None),
        ("", None),
        ("(" * 10_000, None),
        ("1" * 1_000_000, None),
    ],
)
def test_finds_an_output(response, output):
    assert find_output(response) == output


@pytest.mark.parametrize(
    ("response", "arguments"),
    [
        ("<answer>\n```input\n[3, 1], 'a'\n```\n</answer>", "[3, 1], 'a'"),
        ("<answer>f([3,1], 'a')</answer>", "[3, 1], 'a'"),
        ("[ANSWER]assert f([3, 1]) == [1, 3][/ANSWER]", "[3, 1]"),
        ("```input\n[3, 1]\n```", "[3, 1]"),
        ("<answer>0) or (True</answer>", None),
        ("<answer>f(x)</answer>", None),
        ("", None),
    ],
)
def test_finds_arguments(response, arguments):
    assert find_arguments(response) == arguments


@pytest.mark.parametrize("chat", [True, False])
def test_models_are_asked_in_the_words_of_training(source, chat):
    data = source("cruxeval.jsonl", ROW)
    output, inputs = CRUXEvalO(data), CRUXEvalI(data)
    forms = output.form(output.items()[0], chat), inputs.form(inputs.items()[0], chat)
    assert all(ROW["code"] in form.text and "<answer>" in form.text for form in forms)
    assert "```input\n[3, 1]" in forms[0].text
    assert "[1, 3]" in forms[1].text
    assert "[3, 1]" not in forms[1].text
    assert forms[0].stop == (() if chat else ("</answer>",))


def test_outputs_are_compared_with_their_types(source):
    with CRUXEvalO(source("cruxeval.jsonl", ROW)) as suite:
        item = suite.items()[0]
        grades = suite.grade(
            [(item, f"<answer>{text}</answer>") for text in ("[1, 3]", "(1, 3)", "[1.0, 3]", "?")]
        )
    assert [grade.correct for grade in grades] == [True, False, False, False]
    assert [grade.reason for grade in grades] == ["", "wrong", "wrong", "malformed"]


def test_any_input_that_gives_the_output_is_right(source):
    with CRUXEvalI(source("cruxeval.jsonl", ROW)) as suite:
        item = suite.items()[0]
        answers = ("[3, 1]", "(1, 3)", "[1]", "[3, 'a']", "'31'")
        grades = suite.grade([(item, f"<answer>{text}</answer>") for text in answers])
    assert [grade.correct for grade in grades] == [True, True, False, False, False]
    assert grades[3].reason == "exception: TypeError"
