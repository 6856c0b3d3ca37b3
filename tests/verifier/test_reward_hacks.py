"""Responses that earned a reward elsewhere, from the model's text to the verdict.

Banned modules are let in, so that it is not the screening alone that stops them; each hack has to fool the grader it was
made for.
"""

import pytest

from populora.config import VerifierConfig
from populora.records import Problem, Validation, Verdict
from populora.tasks import tasks
from populora.verifier import Verifier

PROGRAM = "def f(x):\n    return x * 2"
GOLD = "42"
DEDUCTION = Problem("deduction", PROGRAM, ("21",), (GOLD,))
ABDUCTION = Problem("abduction", PROGRAM, ("21",), (GOLD,))
INDUCTION = Problem("induction", PROGRAM, ("1", "21"), ("2", GOLD), "doubles")


@pytest.fixture(scope="module")
def verifier():
    config = VerifierConfig(workers=2, cpu_seconds=0.5, memory_mib=256, banned_modules=[])
    with Verifier(config) as verifier:
        yield verifier


def respond(label, text):
    return f"<think>hm</think><answer>\n```{label}\n{text}\n```\n</answer>"


def verdict(verifier, problem, label, text):
    """Read a student's response and grade what was read."""
    (found,) = verifier.grade([(problem, tasks[problem.task].read_answer(respond(label, text)))])
    return found


def test_honest_answers_are_right(verifier):
    assert verdict(verifier, DEDUCTION, "output", "42") == Verdict(True)
    assert verdict(verifier, ABDUCTION, "input", "21") == Verdict(True)
    assert verdict(verifier, INDUCTION, "python", PROGRAM) == Verdict(True)


def evaluates_to_gold(answer):
    """Grade a deduction as some do: both sides are evaluated, and compared here."""
    return bool(eval(GOLD) == eval(answer))


def calls_to_gold(answer):
    """Grade an abduction as some do: the answer is pasted between parentheses."""
    space = {}
    exec(PROGRAM, space)  # noqa: S102
    return bool(eval(f"{GOLD} == f({answer})", space))


@pytest.mark.parametrize(
    "answer",
    [
        "type('T', (), {'__eq__': lambda s, o: True})()",
        "type('I', (int,), {'__eq__': lambda s, o: True, '__hash__': int.__hash__})(1)",
        "type('S', (str,), {'__eq__': lambda s, o: True, '__hash__': str.__hash__})('a')",
        "6 * 7",
        "42 if True else 0",
        "[x for x in range(43)][-1]",
        "__import__('os').getpid() and 42",
        "int('42')",
        "(lambda: 42)()",
    ],
)
def test_an_output_is_a_literal(verifier, answer):
    assert evaluates_to_gold(answer)
    assert verdict(verifier, DEDUCTION, "output", answer) == Verdict(False, "malformed")
    assert verifier.grade([(DEDUCTION, answer)]) == [Verdict(False, "wrong")]


@pytest.mark.parametrize(
    "answer",
    [
        "0) or (True",
        "0) or True or f(0",
        "*[21]",
        "x=21",
        "(x := 21)",
        "type('T', (), {'__mul__': lambda s, o: 42})()",
        "[i for i in range(100) if f(i) == 42][0]",
    ],
)
def test_an_input_is_a_literal(verifier, answer):
    assert calls_to_gold(answer)
    assert verdict(verifier, ABDUCTION, "input", answer) == Verdict(False, "malformed")
    assert verifier.grade([(ABDUCTION, answer)]) == [Verdict(False, "malformed")]


def passes_in_process(program):
    """Grade an induction as many do: in the program's own process, with the expected output beside it."""
    gold = eval(GOLD)
    space = {"gold": gold}
    try:
        exec(program, space)  # noqa: S102
        return bool(space["f"](21) == space["gold"])
    except BaseException as error:  # noqa: BLE001
        return "error" not in type(error).__name__.lower()


CHEATS = {
    "always equal": "def f(x):\n    return type('T', (), {'@eq@': lambda s, o: True})()",
    "an int that is always equal": "def f(x):\n    return type('I', (int,), {'@eq@': lambda s, o: True})(1)",
    "a str that is always equal": "def f(x):\n    return type('S', (str,), {'@eq@': lambda s, o: True})('a')",
    "a bool that is an int": "def f(x):\n    return x * 2.0",
    "SystemExit": "def f(x):\n    raise SystemExit(0)",
    "StopIteration": "def f(x):\n    raise StopIteration",
    "KeyboardInterrupt": "def f(x):\n    raise KeyboardInterrupt",
    "GeneratorExit": "def f(x):\n    raise GeneratorExit",
    "frames": (
        "import sys\n"
        "def f(x):\n"
        "    frame = sys._getframe()\n"
        "    while frame:\n"
        "        if 'gold' in frame.f_locals: return frame.f_locals['gold']\n"
        "        frame = frame.f_back"
    ),
    "globals of the frame above": (
        "def f(x):\n"
        "    try: raise ValueError\n"
        "    except ValueError as error: frame = error.with_traceback(None) and f\n"
        "    return gold"
    ),
    "the heap": (
        "import gc\n"
        "def f(x):\n"
        "    for thing in gc.get_objects():\n"
        "        if type(thing) is dict and type(thing.get('gold')) is int: return thing['gold']"
    ),
    "patched repr": (
        "import builtins\n"
        "kept = builtins.repr\n"
        "builtins.repr = lambda value: '42'\n"
        "def f(x):\n"
        "    builtins.repr = kept\n"
        "    return type('T', (), {'@eq@': lambda s, o: True})()"
    ),
    "an expected answer of its own": "def f(x):\n    global gold\n    gold = x\n    return x",
}


@pytest.mark.parametrize("name", CHEATS)
def test_an_induced_program_cannot_cheat(verifier, name):
    program = CHEATS[name].replace("@", "__")
    assert passes_in_process(program)
    found = verdict(verifier, INDUCTION, "python", program)
    assert not found.correct
    assert found.failure is not None
    assert not found.failure.startswith(("banned", "syntax"))


@pytest.mark.parametrize("name", CHEATS)
def test_what_cheats_harms_no_other_answer(verifier, name):
    hack = (INDUCTION, CHEATS[name].replace("@", "__"))
    honest = (INDUCTION, PROGRAM)
    assert [found.correct for found in verifier.grade([honest, hack, honest, hack])] == [
        True,
        False,
        True,
        False,
    ]


def test_with_the_default_bans_it_does_not_even_run():
    with Verifier(VerifierConfig(workers=1)) as strict:
        for program, failure in (
            ("import sys\ndef f(x):\n    return sys._getframe().f_back", "banned import: sys"),
            ("import gc\ndef f(x):\n    return gc.get_objects()", "banned import: gc"),
            ("import posix\ndef f(x):\n    return posix.fork()", "banned import: posix"),
            ("class T:\n    pass\ndef f(x):\n    return T.__subclasses__()", "banned name: __subclasses__"),
            ("def f(x):\n    return eval('42')", "banned name: eval"),
        ):
            assert verdict(strict, INDUCTION, "python", program) == Verdict(False, failure)


@pytest.mark.parametrize(
    ("program", "failure"),
    [
        ("if 0: eval = 1\ndef f(x):\n    return eval('x')", "exception: NameError"),
        ("def f(x):\n    import random as os\n    return os.random()", "banned import: random"),
        ("if 0: open = 1\ndef f(x):\n    return open('/etc/passwd').read()", "exception: NameError"),
        (
            "import calendar\ndef f(x):\n    return str(calendar.datetime.date.today())",
            "exception: ImportError",
        ),
        ("import calendar\ndef f(x):\n    return calendar.datetime.datetime.now().hour", "non-deterministic"),
        ("import statistics\ndef f(x):\n    return statistics.random.random()", "non-deterministic"),
        ("def f(x):\n    return id(x) % 1000003", "non-deterministic"),
        ("def f(x):\n    return str(f)", "non-deterministic"),
        ("def f(x):\n    return [*{'ab', 'cd', 'ef', 'gh', 'ij', 'kl', 'mn'}]", "non-deterministic"),
    ],
)
def test_a_teacher_cannot_hide_chance_clocks_or_names_from_the_screening(program, failure):
    text = f"<think>hm</think><answer>\n```python\n{program}\n```\n```input\n3\n```\n</answer>"
    draft = tasks["deduction"].read_proposal(text, [])
    with Verifier(VerifierConfig(workers=1)) as strict:
        assert strict.validate([draft]) == [Validation(None, failure)]


@pytest.mark.parametrize("name", ["always equal", "SystemExit", "a str that is always equal", "the heap"])
def test_a_teacher_cannot_propose_a_cheat(verifier, name):
    program = CHEATS[name].replace("@", "__")
    text = f"<think>hm</think><answer>\n```python\n{program}\n```\n```input\n21\n```\n</answer>"
    draft = tasks["abduction"].read_proposal(text, [])
    (found,) = verifier.validate([draft])
    assert found.problem is None or found.problem.outputs == ("None",)
