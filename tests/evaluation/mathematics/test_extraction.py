"""Final answers are found in responses of every style."""

import pytest

from populora.evaluation.mathematics.extraction import extract


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("<think>1 + 1</think> <answer>2</answer>", "2"),
        ("<answer>1</answer> no, <answer>\\boxed{\\frac{1}{2}}</answer>", "\\frac{1}{2}"),
        ("<answer>The answer is 7.</answer>", "7"),
        ("<answer>7", "7"),
        ("<think>it is \\boxed{3}</think> So \\boxed{4}.", "4"),
        ("<think>it is \\boxed{3}</think>", "3"),
        ("First \\boxed{1}, but then it must be \\boxed{\\sqrt{x^{2}+1}}.", "\\sqrt{x^{2}+1}"),
        ("either $\\boxed{2}$ or $\\boxed{3}$.", "2, 3"),
        ("We get $\\boxed{2}$. Now for the rest: $\\boxed{3}$", "3"),
        ("\\boxed{\\{1, 2\\}}", "\\{1, 2\\}"),
        ("so \\boxed 5 it is", "5"),
        ("it is \\boxed{6}, or \\boxed{7", "6"),
        ("6 * 3 = 18\n#### 18", "18"),
        ("#### $1,234", "$1,234"),
        ("Final Answer: The final answer is $\\frac{3}{4}$. I hope it is correct.", "\\frac{3}{4}"),
        ("**Answer:** 42", "42"),
        ("The answer is 42 because 6 * 7 = 42.", "42"),
        ("The answer is $x = 3$ and $y = 4$", "x = 3, y = 4"),
        ("so 18 dollars\nA: 18", "18"),
        ("Adding up, she has 3 + 4 = 7 apples.", "7"),
        ("There are 1,234 of them.", "1,234"),
        ("The temperature is -5", "-5"),
        ("Thus 10-5", "5"),
        ("In the end we have $y = 2x$.", "y = 2x"),
    ],
)
def test_finds_the_answer(response: str, answer: str) -> None:
    assert extract(response).answer == answer


@pytest.mark.parametrize(
    "response", ["", "I do not know.", "\\boxed{", "\\boxed{\\frac{1}{2}", "\\boxed{}", "\n\n"]
)
def test_without_an_answer_there_is_a_reason(response: str) -> None:
    found = extract(response)
    assert found.answer == ""
    assert found.reason.startswith("no answer")


@pytest.mark.parametrize(
    "response",
    [
        "\\boxed{" + "9" * 1_000_000 + "}",
        "\\boxed{" * 100_000,
        "\\boxed{1}" * 10_000 + "\\boxed{",
        "{" * 1_000_000,
        "#" * 1_000_000,
        "$" * 1_000_000,
        "answer " * 200_000,
        "<answer>" * 100_000,
        "\x00\ud800" * 100_000,
    ],
)
@pytest.mark.timeout(30)
def test_huge_responses_are_read_in_time(response: str) -> None:
    assert len(extract(response).answer) <= 2000
