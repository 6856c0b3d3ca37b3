"""The program is found in whatever form a response has it."""

import time

import pytest

from populora.evaluation.code.extraction import MAX_CHARS, extract

PROGRAM = "import math\n\ndef area(r):\n    return math.pi * r * r\n"
FENCED = f"```python\n{PROGRAM}```"


@pytest.mark.parametrize(
    "response",
    [
        PROGRAM,
        FENCED,
        f"Here is my solution:\n\n{FENCED}\n\nIt multiplies.",
        FENCED.replace("python", "py"),
        FENCED.replace("python", "Python3"),
        FENCED.replace("python", ""),
        FENCED.replace("python", "python title=area.py"),
        FENCED.replace("```", "~~~~"),
        FENCED.replace("\n", "\r\n"),
        "\n".join(f"   {line}" for line in FENCED.split("\n")),
        f"Below is a script:\n```python\n{PROGRAM}",
        f"Below is a script:\n```python\n{PROGRAM}\n```",
        f"{FENCED}\nExample usage:\n```python\nprint(area(2))\n```",
        f"First try:\n```python\ndef area(r): return r\n```\nBetter:\n{FENCED}",
        f"```python\ndef helper(): pass\n```\n{FENCED}\n```\n3.14\n```",
        f"{FENCED}\n```bash\npython area.py\n```",
        f"<think>def area(r): I could write ```python\ndef area(r): 0\n```</think>\n{FENCED}",
        f"<think>maybe</think><answer>{FENCED}</answer>",
        f"<answer>\n{PROGRAM}</answer>",
        f"<answer>```python\ndef area(r): 0\n```</answer> No: <answer>{FENCED}",
        f"The function is as follows.\n{PROGRAM}\nThis uses pi, that's all.",
        f"```python\nunclosed\n```python\n{PROGRAM}```",
    ],
)  # fmt: skip
def test_finds_the_program(response):
    assert extract(response, "area").program.strip() == PROGRAM.strip()


@pytest.mark.parametrize(
    "stop", ["\ndef ", "\nclass ", "\nif __name__", "\nprint(", '\n"""', "</s>", "\nassert"]
)
def test_a_continuation_ends_before_what_stopped_it(stop):
    assert extract(PROGRAM.rstrip() + stop, "area", (stop,)).program.strip() == PROGRAM.strip()


@pytest.mark.parametrize(
    "tail",
    ["\n\ndef area_of_square(a", "\n\nassert area(1) =", "\n\nThis is it, isn't it?", '\n\n"""unclosed'],
)
def test_a_continuation_loses_the_part_that_is_no_python(tail):
    assert extract(PROGRAM + tail, "area").program.strip() == PROGRAM.strip()


def test_a_program_with_an_error_in_a_fence_stays_as_it_is():
    assert extract("```python\ndef area(r) return r\n```", "area").program == "def area(r) return r\n"


def test_the_last_block_counts_where_none_defines_the_function():
    assert extract("```python\na = 1\n```\n```python\nb = 2\n```", "area").program == "b = 2\n"


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("I cannot help with that.", "no program"),
        ("Sorry, I can't.", "no program"),
        ("```cpp\nint area(int r) { return r; }\n```", "cpp"),
        ("```javascript\nlet a = 1;\n```\n```rust\nfn a() {}\n```", "rust"),
        ("```python\n```", "no program"),
        ("x" * (MAX_CHARS + 1), "huge"),
    ],
)
def test_says_why_there_is_no_program(response, reason):
    found = extract(response, "area")
    assert found.program == ""
    assert reason in found.reason


@pytest.mark.parametrize(
    "response",
    [
        "```" + "a" * 150_000 + "`",
        "`" * 199_000,
        "```\n" * 40_000,
        "def f(\n" * 25_000,
        "import (\n" + "x\n" * 90_000,
        "def f():\n" + " " * 100_000 + "'''",
        "(" * 199_000,
        "@" * 100_000 + "\n" * 90_000,
        "<answer>" * 20_000,
    ],
)
def test_takes_little_time_for_hostile_text(response):
    before = time.process_time()
    extract(response, "area")
    assert time.process_time() - before < 20
