"""What the verifier says of drafts and answers."""

import asyncio
import dataclasses

import pytest

from populora.config import VerifierConfig
from populora.errors import ConfigError
from populora.records import Draft, Problem, Validation, Verdict
from populora.verifier import Verifier
from populora.verifier.pool import ZygotePool

CONFIG = VerifierConfig(
    workers=2, cpu_seconds=0.3, memory_mib=256, max_literal_chars=200, max_program_chars=600
)
WORDS = "'alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta', 'eta'"


@pytest.fixture(scope="module")
def verifier():
    with Verifier(CONFIG) as verifier:
        yield verifier


def draft(body, *inputs, task="deduction", message=None):
    return Draft(task, f"def f(x):\n    {body}", inputs or ("3",), message)


def failure(verifier, *args, **kwargs):
    (validation,) = verifier.validate([draft(*args, **kwargs)])
    assert validation.problem is None
    return validation.failure


def test_a_draft_becomes_a_problem_with_the_programs_own_outputs(verifier):
    inputs = tuple(str(n) for n in range(10))
    message = "doubles"
    (validation,) = verifier.validate([draft("return {'b': 2 * x, 'a': x}", *inputs, message=message)])
    outputs = tuple(f"{{'a': {n}, 'b': {2 * n}}}" for n in range(10))
    assert validation == Validation(
        Problem("deduction", "def f(x):\n    return {'b': 2 * x, 'a': x}", inputs, outputs, message)
    )


@pytest.mark.parametrize(
    ("body", "category"),
    [
        ("return (", "syntax"),
        ("import os; return 1", "banned import: os"),
        ("return eval('1')", "banned name: eval"),
        ("while True: pass", "timeout"),
        ("return bytearray(1 << 30)", "memory"),
        ("return f(x + 1)", "exception: RecursionError"),
        ("return 1 // (x - 3)", "exception: ZeroDivisionError"),
        ("raise type('Mine', (Exception,), {})", "exception: Exception"),
        ("yield x", "not a literal: generator"),
        ("return float('inf')", "not a literal: float"),
        ("return 'a' * 500", "too long"),
        (f"return list({{{WORDS}}})", "non-deterministic"),
        ("return hash('a') % 1000", "non-deterministic"),
        ("return str(object())", "non-deterministic"),
        ("return " + "1 + " * 200 + "1", "too long"),
        ("raise SystemExit(0)", "exception: SystemExit"),
    ],
)
def test_a_bad_draft_has_a_category(body, category, verifier):
    assert failure(verifier, body) == category


@pytest.mark.parametrize(
    "imports", ["import time", "import random", "from time import time", "import random as r"]
)
def test_clocks_and_chance_are_banned(imports, verifier):
    assert failure(verifier, f"{imports}; return 1") == f"banned import: {imports.split()[1]}"


def test_inputs_have_to_be_short_literals(verifier):
    assert failure(verifier, "return 1", "'" + "a" * 300 + "'") == "too long"
    assert failure(verifier, "return 1", "1 + 1") == "not a literal: input"
    assert failure(verifier, "return 1", "1), f(2") == "not a literal: input"


def test_every_input_has_to_give_a_literal(verifier):
    assert failure(verifier, "return 6 // x", "3", "2", "0", "1") == "exception: ZeroDivisionError"


def test_state_carried_from_one_input_to_the_next_is_non_deterministic(verifier):
    stateful = Draft(
        "induction",
        "import string\ndef f(x):\n    string.digits += 'x'\n    return len(string.digits)",
        ("1", "2", "3"),
        "counts calls",
    )
    assert verifier.validate([stateful]) == [Validation(None, "non-deterministic")]


def problem(task, program, inputs, outputs):
    return Problem(task, program, inputs, outputs, "message")


DEDUCTION = problem("deduction", "def f(x):\n    return x + 1", ("1",), ("2",))
ABDUCTION = problem("abduction", "def f(x):\n    return x * x > 3", ("2",), ("True",))
INDUCTION = problem("induction", "def f(x):\n    return 2 * x", ("0", "1", "2", "3"), ("0", "2", "4", "6"))


@pytest.mark.parametrize(
    ("problem", "answer", "failure"),
    [
        (DEDUCTION, "2", None),
        (DEDUCTION, "2.0", "wrong"),
        (DEDUCTION, None, "malformed"),
        (ABDUCTION, "2", None),
        (ABDUCTION, "-99", None),
        (ABDUCTION, "1", "wrong"),
        (ABDUCTION, "0) or (True", "malformed"),
        (ABDUCTION, "'a'", "exception: TypeError"),
        (ABDUCTION, "1, 2", "exception: TypeError"),
        (ABDUCTION, "9" * 300, "too long"),
        (ABDUCTION, None, "malformed"),
        (INDUCTION, "def f(x):\n    return x + x", None),
        (INDUCTION, "def f(x):\n    return {2: 4, 3: 6}[x]", None),
        (INDUCTION, "def f(x):\n    return 2.0 * x", "wrong"),
        (INDUCTION, "def f(x):\n    return 4", "wrong"),
        (INDUCTION, "def f(x):\n    return 2 * x if x < 3 else 1 // 0", "exception: ZeroDivisionError"),
        (INDUCTION, "def g(x):\n    return 2 * x", "no entry function"),
        (INDUCTION, "def f(x):\n    import os", "banned import: os"),
        (INDUCTION, "not python at all", "syntax"),
        (
            INDUCTION,
            "class T:\n    def __eq__(s, o): return True\ndef f(x):\n    return T()",
            "not a literal: object",
        ),
        (INDUCTION, "def f(x):\n    return x * 2 if x < 3 else [6 for _ in iter(int, 1)]", "timeout"),
        (INDUCTION, None, "malformed"),
    ],
)
def test_an_answer_has_a_verdict(problem, answer, failure, verifier):
    assert verifier.grade([(problem, answer)]) == [Verdict(failure is None, failure)]


def test_type_strict_comparison(verifier):
    problem = dataclasses.replace(ABDUCTION, program="def f(x):\n    return x", outputs=("1",))
    answers = ["1", "True", "1.0", "[1]"]
    assert [verdict.correct for verdict in verifier.grade([(problem, answer) for answer in answers])] == [
        True,
        False,
        False,
        False,
    ]


def test_batches_keep_their_order(verifier):
    answers = [(dataclasses.replace(DEDUCTION, outputs=(str(i % 3),)), "1") for i in range(20)]
    runs = [(ABDUCTION, str(i % 5) if i % 7 else None) for i in range(40)]
    mixed = [item for pair in zip(runs, answers * 2, strict=True) for item in pair]
    expected = [
        Verdict(i % 5 >= 2, None if i % 5 >= 2 else "wrong") if i % 7 else Verdict(False, "malformed")
        for i in range(40)
    ]
    assert verifier.grade(mixed)[::2] == expected
    assert [verdict.correct for verdict in verifier.grade(mixed)[1::2]] == [
        i % 20 % 3 == 1 for i in range(40)
    ]
    drafts = [draft(f"return {i}" if i % 3 else "return (") for i in range(15)]
    texts = [v.problem.outputs[0] if v.problem else v.failure for v in verifier.validate(drafts)]
    assert texts == [str(i) if i % 3 else "syntax" for i in range(15)]


def test_the_same_run_is_made_once_in_a_batch(verifier, monkeypatch):
    counts = []
    original = ZygotePool.run

    async def counted(self, jobs):
        counts.append(len(jobs))
        return await original(self, jobs)

    monkeypatch.setattr(ZygotePool, "run", counted)
    assert [v.correct for v in verifier.grade([(ABDUCTION, "2")] * 30 + [(ABDUCTION, "1")] * 10)] == [
        True
    ] * 30 + [False] * 10
    assert counts == [2]


def test_nothing_to_do_starts_nothing(monkeypatch):
    monkeypatch.setattr(ZygotePool, "start", None)
    verifier = Verifier(CONFIG)
    assert verifier.validate([]) == []
    assert verifier.grade([]) == []
    assert verifier.grade([(DEDUCTION, "2")]) == [Verdict(True)]
    verifier.close()


def test_it_can_be_used_again_after_close_and_from_a_running_loop():
    verifier = Verifier(dataclasses.replace(CONFIG, workers=1), seed=2**32 - 1)

    async def caller():
        return verifier.grade([(ABDUCTION, "2")])

    for _ in range(2):
        assert asyncio.run(caller()) == [Verdict(True)]
        verifier.close()
    verifier.close()


@pytest.mark.parametrize(
    "setting",
    [
        {"workers": 0},
        {"cpu_seconds": 0},
        {"cpu_seconds": 2, "wall_seconds": 1},
        {"memory_mib": 1},
        {"max_literal_chars": 5000},
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(setting):
    with pytest.raises(ConfigError, match=rf"data\.verifier\.{list(setting)[-1]} must be"):
        VerifierConfig(**setting)
