import pytest
from hypothesis import given
from hypothesis import strategies as st

from populora.config import VerifierConfig
from populora.records import Draft
from populora.tasks import seed_problems
from populora.tasks.screening import screen, screen_draft

CONFIG = VerifierConfig(max_program_chars=300, max_literal_chars=20)
BODY = "def f(x):\n    return x\n"


@pytest.mark.parametrize(
    ("program", "category"),
    [
        ("def f(x) return x", "syntax"),
        ("def f(x):\n    return x\0", "syntax"),
        ("def f(x):\n    return " + "(" * 250, "syntax"),
        ("def f(x):\n    return '\ud800'", "syntax"),
        ("", "no entry function"),
        ("def g(x):\n    return x", "no entry function"),
        ("f = lambda x: x", "no entry function"),
        ("if True:\n    def f(x): return x", "no entry function"),
        ("class A:\n    def f(self): return 1", "no entry function"),
        ("async def f(x):\n    return x", "no entry function"),
        ("def f():\n    return 1", "no parameter"),
        ("def f(*, x=1):\n    return x", "no parameter"),
        ("def f(x, *, y):\n    return x", "no parameter"),
        ("def f(**x):\n    return x", "no parameter"),
        ("def f(x):\n    return x\ndef f():\n    return 1", "no parameter"),
        (BODY + "import os", "banned import: os"),
        (BODY + "import math, sys as s", "banned import: sys"),
        (BODY + "import os.path", "banned import: os"),
        ("def f(x):\n    from time import sleep\n    return x", "banned import: time"),
        (BODY + "from os.path import join", "banned import: os"),
        (BODY + "from . import os", "banned import: ."),
        (BODY + "from .math import pi", "banned import: ."),
        ("def f(x):\n    return eval('x')", "banned name: eval"),
        ("def f(x):\n    run = exec\n    return x", "banned name: exec"),
        ("def f(x):\n    return __import__('os')", "banned name: __import__"),
        ("def f(x):\n    return __builtins__", "banned name: __builtins__"),
        ("def f(x):\n    return x.__class__.__base__", "banned name: __base__"),
        ("def f(x):\n    x.__dict__ = 1", "banned name: __dict__"),
        (BODY + "async def g(): pass", "async"),
        (BODY + "#" * 300, "too long"),
    ],
)
def test_what_is_unfit_to_run(program: str, category: str) -> None:
    assert screen(program, CONFIG) == category


@pytest.mark.parametrize(
    "program",
    [
        BODY,
        "def f(*x):\n    return x",
        "def f(x=1, /):\n    return x",
        "def f(x, *, y=2, **z):\n    return x",
        "import math, re\nfrom collections import Counter\ndef f(x):\n    return math.pi",
        "def f(input, vars):\n    open = input + vars\n    return open",
        "def compile(x):\n    return x\ndef f(x):\n    return compile(x)",
        "class A:\n    def __init__(self):\n        super().__init__()\n    def __eq__(self, o):\n        return 1\ndef f(x):\n    return type(x).__name__",
        "def f(x):\n    '''import os, eval(x)'''\n    return 'exec'  # open()",
        "def f(x):\n    return [__ for __ in x]",
        "import osmium\ndef f(x):\n    def g(): return x\n    return g()",
    ],
)  # fmt: skip
def test_what_is_fit_to_run(program: str) -> None:
    assert screen(program, CONFIG) is None


def test_the_ban_list_is_a_setting() -> None:
    config = VerifierConfig(banned_modules=["math"])
    assert screen("import math\n" + BODY, config) == "banned import: math"
    assert screen("import os\n" + BODY, config) is None


def test_a_draft_is_screened_whole() -> None:
    draft = Draft("induction", BODY, ("'" + "a" * 18 + "'", "2"), "m" * 20)
    assert screen_draft(draft, CONFIG) is None
    assert screen_draft(Draft("deduction", BODY, ("'" + "a" * 19 + "'",)), CONFIG) == "too long"
    assert screen_draft(Draft("induction", BODY, ("1",), "m" * 21), CONFIG) == "too long"
    assert screen_draft(Draft("deduction", "x", ("1",)), CONFIG) == "no entry function"


def test_seed_problems_are_fit_to_run() -> None:
    drafts = [Draft(p.task, p.program, p.inputs, p.message) for p in seed_problems()]
    assert {screen_draft(draft, VerifierConfig()) for draft in drafts} == {None}


@given(st.text())
def test_no_text_raises(program: str) -> None:
    assert screen(program, CONFIG)
