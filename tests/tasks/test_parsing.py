import pytest
from hypothesis import given
from hypothesis import strategies as st

from populora.records import Draft
from populora.tasks.parsing import answer, blocks, last_block, one_input_draft

RESPONSE = "<think>\nhm\n</think>\n<answer>\n```python\ndef f(x):\n\n    return x\n```\n```input\n1,2\n```\n</answer>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>a</think><answer>b</answer>", "b"),
        ("a</think>\n\n<answer>b</answer> bye", "b"),
        ("</think><answer>1</answer><answer>2</answer>", "2"),
        ("</think><answer>1<answer>2</answer>", "2"),
        ("<think><answer>1</answer></think><answer>2</answer>", "2"),
        ("</think><answer></answer>", ""),
        ("<answer>b</answer>", None),
        ("<think><answer>b</answer></think>", None),
        ("</think><answer>b", None),
        ("</think>b</answer>", None),
        ("</think><answer>1</answer><answer>2", None),
        ("</answer></think><answer>", None),
        ("", None),
    ],
)
def test_the_last_closed_answer_after_a_closed_thought_counts(text: str, expected: str | None) -> None:
    assert answer(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```python\nx\n```", ["x"]),
        ("```py  \r\nx\r\ny\r\n```  \r\n", ["x\ny"]),
        ("``` Python3\nx\n ```", ["x"]),
        ("```python\n```", [""]),
        ("```python\n1\n```\n```input\n2\n```\n```python\n3\n```", ["1", "3"]),
        ("```python\n'```input'\n```input\n```", ["'```input'\n```input"]),
        ("```input\n```python\nx\n```", []),
        ("```python\nx", []),
        ("```python x\n```", []),
        ("python\nx\n```", []),
        ("```\nx\n```", []),
    ],
)
def test_fenced_blocks_by_label(text: str, expected: list[str]) -> None:
    assert blocks(text, "python") == expected


@given(st.lists(st.tuples(st.sampled_from(["python", "input", "message"]), st.text("ab `\n", max_size=12))))
def test_blocks_return_what_was_fenced(written: list[tuple[str, str]]) -> None:
    clean = [(label, body) for label, body in written if "```" not in body.replace(" ", "")]
    text = "\n".join(f"```{label}\n{body}\n```" for label, body in clean)
    for label in ("python", "input", "message"):
        assert blocks(text, label) == [body for name, body in clean if name == label]


parts = st.sampled_from(
    ["<answer>", "</answer>", "<think>", "</think>", "```", "```python", "```input", "\n", "\r", "1"]
)


@given(st.text() | st.lists(parts).map("".join))
def test_no_text_raises(text: str) -> None:
    body = last_block(text, "python")
    assert body is None or body.strip()
    draft = one_input_draft("deduction", text)
    assert draft is None or (draft.program and draft.inputs[0])


@pytest.mark.parametrize("piece", ["<answer>", "```python\n", "```", "</think><answer>```", "\n", "`", "<"])
def test_megabytes_are_read(piece: str) -> None:
    text = "</think>" + piece * (1_000_000 // len(piece)) + RESPONSE
    assert last_block(text, "python") == "def f(x):\n\n    return x"


def test_program_and_input_make_a_draft() -> None:
    assert one_input_draft("abduction", RESPONSE) == Draft(
        "abduction", "def f(x):\n\n    return x", ("1, 2",)
    )


@pytest.mark.parametrize(
    "change", [("1,2", "x"), ("1,2", ""), ("```input", "```output"), ("def f(x):\n\n    return x", " ")]
)
def test_a_missing_or_unreadable_part_is_malformed(change: tuple[str, str]) -> None:
    assert one_input_draft("abduction", RESPONSE.replace(*change)) is None
