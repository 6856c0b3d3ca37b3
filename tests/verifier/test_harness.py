"""Programs as modules whose functions are called, and as scripts: what they may do, and how they fail."""

import ast
import base64
import marshal
from collections import Counter, OrderedDict, namedtuple
from decimal import Decimal
from enum import IntEnum, StrEnum
from fractions import Fraction

import numpy as np
import pytest

from populora.verifier.harness import described
from populora.verifier.sandbox import Failure, Harness, Job, Limits, Value

LIMITS = Limits(cpu_seconds=3.0, wall_seconds=60, memory_mib=1024, literal_chars=2000)


def call(bench, program, *calls, entry="g", seconds=1.0, prelude="", limits=LIMITS):
    inputs = tuple(base64.b64encode(marshal.dumps(arguments, 2)).decode() for arguments in calls)
    (outcomes,) = bench.outcomes(
        [Job(program, inputs, limits, harness=Harness("call", prelude, entry, seconds))]
    )
    return [
        outcome.text.split(" ", 1)[1] if isinstance(outcome, Value) else outcome.category
        for outcome in outcomes
    ]


def script(bench, program, *inputs, seconds=1.0, prelude="", limits=LIMITS):
    (outcomes,) = bench.outcomes(
        [Job(program, inputs, limits, harness=Harness("script", prelude, "", seconds))]
    )
    return [ast.literal_eval(outcome.text) if isinstance(outcome, Value) else outcome for outcome in outcomes]


def test_a_program_runs_once_for_all_calls(bench):
    program = "seen = []\ndef g(x):\n    seen.append(x)\n    return seen"
    assert call(bench, program, (1,), ("a",), ((2.5, None),)) == [
        "=[1]",
        "=[1, 'a']",
        "=[1, 'a', (2.5, None)]",
    ]


def test_arguments_keep_their_types(bench):
    arguments = (
        1,
        True,
        1.5,
        float("inf"),
        2j,
        "é\ud800",
        b"\x00",
        [(1,), {2}, frozenset({3}), {4: None}],
        10**30,
    )
    (result,) = call(
        bench, "def g(*x): return [type(y).__name__ for y in x], x[3] == float('inf'), x[5], x[-1]", arguments
    )
    names = ["int", "bool", "float", "float", "complex", "str", "bytes", "list", "int"]
    assert ast.literal_eval(result[1:]) == (names, True, "é\ud800", 10**30)


def test_an_entry_may_be_an_expression_and_a_prelude_comes_first(bench):
    program = "from __future__ import annotations\nclass Solution:\n    def twice(self, x: List[int]): return sqrt(x) * 2"
    assert call(bench, program, (16,), entry="Solution().twice", prelude="from math import *") == ["=8.0"]


def test_calls_end_with_the_first_that_fails(bench):
    assert call(bench, "def g(x): return 1 // x", (1,), (0,), (2,)) == [
        "=1",
        "exception: ZeroDivisionError",
        "crash: no result",
    ]


@pytest.mark.parametrize(
    ("program", "category"),
    [
        ("def g(x) return x", "syntax"),
        ("def f(x): return x", "exception: NameError"),
        ("raise SystemExit(0)", "exception: SystemExit"),
        ("import os\nos._exit(0)", "crash: no result"),
        ("def g(x):\n    while True: pass", "timeout"),
        ("while True: pass", "timeout"),
        ("def g(x):\n    try:\n        while True: pass\n    except BaseException: return x", "timeout"),
        ("def g(x): return bytearray(1 << 32)", "memory"),
        ("def g(x): return g(x)", "exception: RecursionError"),
        ("def g(x):\n    x = []\n    x.append(x)\n    return x", "exception: RecursionError"),
        ("import os\ndef g(x): return os.fork()", "exception: PermissionError"),
        ("def g(x): return open('/etc/passwd').read()", "exception: PermissionError"),
        ("import socket\ns = socket.socket()", "exception: PermissionError"),
    ],
)  # fmt: skip
def test_a_call_that_gives_nothing_says_why(bench, program, category):
    assert call(bench, program, (1,), seconds=0.3) == [category]


def test_the_time_limit_is_that_of_one_call(bench):
    program = "def g(n):\n    return sum(i * i for i in range(n)) * 0"
    many = [(600_000,)] * 12
    assert call(bench, program, *many, seconds=0.5) == ["=0"] * 12
    assert call(bench, program, (10,), (10**9,), seconds=0.5) == ["=0", "timeout"]


def test_the_limit_of_all_calls_holds_a_program_that_takes_its_timer_away(bench):
    program = "import signal\ndef g(x):\n    signal.setitimer(signal.ITIMER_PROF, 0)\n    while True: pass"
    limits = Limits(cpu_seconds=0.5, wall_seconds=60, memory_mib=1024, literal_chars=100)
    assert call(bench, program, (1,), seconds=0.2, limits=limits) == ["timeout"]


def test_a_forged_line_counts_as_nothing_but_the_programs_own_result(bench):
    program = "import os\ndef g(x):\n    os.write(3, b'value 5\\n')\n    return x"
    assert call(bench, program, (1,)) == ["crash: no result"]


def test_a_long_result_is_a_digest_that_tells_it_from_others(bench):
    program = "def g(n, x): return [1] * n + [x]"
    same, again, other, short = call(bench, program, (30_000, 2), (30_000, 2), (30_000, 3), (3, 2))
    assert same == again != other
    assert same[0] == "#"
    assert short == "=[1, 1, 1, 2]"
    number, more = call(bench, "def g(n): return 3 ** n", (2_000_000,), (2_000_001,))
    assert number != more


Point = namedtuple("Point", "x y")
Colour = StrEnum("Colour", ["RED"])
Size = IntEnum("Size", ["BIG"])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1, (2,), "a'b\n", None, True], '=[1, (2,), "a\'b\\n", None, True]'),
        (float("-inf"), "=-inf"),
        (1 + 2j, "=(1+2j)"),
        (set(), "=set()"),
        (Counter("aab"), "~{'a': 2, 'b': 1}"),
        (OrderedDict(a=1), "~{'a': 1}"),
        ([OrderedDict(a=1)], "=[{'a': 1}]"),
        (Point(1, 2), "~(1, 2)"),
        (Colour.RED, "~'red'"),
        (Size.BIG, "~1"),
        ({1: 2}.keys(), "~{1}"),
        (Decimal("0.5"), "~0.5"),
        (Fraction(1, 3), "~Ellipsis"),
        (np.float64(0.5), "~0.5"),
        (np.int64(3), "~3"),
        ([np.bool_(True)], "=[True]"),
        (np.zeros(2), "~Ellipsis"),
        (range(3), "~Ellipsis"),
        ((x for x in "ab"), "~Ellipsis"),
        (object(), "~Ellipsis"),
    ],
)
def test_a_result_is_described_as_what_it_compares_equal_to(value, text):
    assert described(value) == text
    plain = text[1:]
    if "Ellipsis" not in plain and "inf" not in plain:
        assert ast.literal_eval(plain) == value


def test_integers_have_as_many_digits_as_they_need():
    assert described(10**5000) == f"=1{'0' * 5000}"


def test_a_script_reads_and_writes(bench):
    program = "import sys\nname = input()\nprint('hello', name, sep='-')\nsys.stdout.write(sys.stdin.read().upper())"
    assert script(bench, program, "bob\nx\ny\n", "ann") == ["hello-bob\nX\nY\n", "hello-ann\n"]


@pytest.mark.parametrize(
    "program",
    [
        "import sys\nfor line in sys.stdin: print(int(line) * 2)",
        "import sys\nprint(*(2 * int(x) for x in sys.stdin.buffer.read().split()), sep='\\n')",
        "print(*(2 * int(x) for x in open(0).read().split()), sep='\\n')",
        "print(*(2 * int(x) for x in open('/dev/stdin', 'rb')), sep='\\n')",
        "import os\nn = os.fstat(0).st_size\nos.write(1, b'\\n'.join(b'%d' % (2 * int(x)) for x in os.read(0, n).split()))",
        "import sys, threading\ndef main():\n    for x in sys.stdin.read().split(): print(2 * int(x))\n"  # noqa: ISC004
        "threading.stack_size(1 << 26)\nt = threading.Thread(target=main)\nt.start()\nt.join()",
        "def main():\n    print(2 * int(input()))\n    print(2 * int(input()))\n    exit(0)\nif __name__ == '__main__':\n    main()",
        "import sys, os\nprint(4)\nprint(6)\nsys.stdout.flush()\nos._exit(0)",
        "import sys, io\nout = io.StringIO()\nsys.stdout, real = out, sys.stdout\nprint(4)\nprint(6)\nreal.write(out.getvalue())",
        "import sys\nwrapper = sys.stdout = open(1, 'w')\nprint(4)\nprint(6)",
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\nprint(A(4).x, 6, sep='\\n')\nimport sys\nsys.stdout.close()",
    ],
)
def test_a_script_may_use_any_of_the_usual_ways(bench, program):
    (output,) = script(bench, program, "2\n3\n")
    assert output.split() == ["4", "6"]


def test_recursion_as_deep_as_a_script_asks_for(bench):
    program = (
        "import sys\nfrom functools import lru_cache\nsys.setrecursionlimit(10**6)\n"
        "@lru_cache(None)\ndef f(n): return f(n - 1) + 1 if n else 0\nprint(f(int(input())))"
    )
    assert script(bench, program, "30000") == ["30000\n"]


@pytest.mark.parametrize(
    ("program", "failure"),
    [
        ("print(1)\ninput()\ninput()", "exception: EOFError"),
        ("print(", "syntax"),
        ("while True: print('a' * 500)", "timeout"),
        ("for _ in range(100): print('a' * 500)", "too long"),
        ("import sys\nprint(1)\nsys.exit(3)", None),
        ("print(1)\nraise ValueError", "exception: ValueError"),
        ("open('/etc/passwd')", "exception: PermissionError"),
        ("import subprocess\nsubprocess.run(['ls'])", "exception"),
        ("import os\nwhile True: os.fork()", "exception: PermissionError"),
        ("import os\nos.kill(os.getppid(), 9)", "exception: PermissionError"),
    ],
)  # fmt: skip
def test_a_script_that_fails_says_why_and_leaves_the_next_run_alone(bench, program, failure):
    first, second = script(bench, program, "x", "y", seconds=0.3)
    if failure is None:
        assert (first, second) == ("1\n", "1\n")
    else:
        assert isinstance(first, Failure)
        assert first.category.startswith(failure)
        assert isinstance(second, Failure)
    assert script(bench, "print(input())", "still here") == ["still here\n"]
