"""What the endings of programs are called, and that each leaves the others alone."""

import textwrap

import psutil
import pytest

from populora.verifier.sandbox import Failure, Limits, Value

OUTCOMES = {
    "infinite loop": ("while True: pass", Failure("timeout")),
    "loop that catches everything": (
        """
        while True:
            try:
                while True: pass
            except BaseException:
                pass
        """,
        Failure("timeout"),
    ),
    "loop that blocks signals": (
        """
        import signal
        for number in range(1, 65):
            try: signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError): pass
        while True: pass
        """,
        Failure("timeout"),
    ),
    "long loop in C": ("return len(str(sum(range(10**12))))", Failure("timeout")),
    "memory bomb": (
        """
        keep = []
        while True:
            keep.append(bytearray(1 << 24))
        """,
        Failure("memory"),
    ),
    "one huge allocation": ("return len(bytearray(1 << 32))", Failure("memory")),
    "raised limits": (
        """
        import resource
        for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_NPROC):
            try: resource.setrlimit(kind, (resource.RLIM_INFINITY,) * 2)
            except (OSError, ValueError): pass
        return len(bytearray(1 << 32))
        """,
        Failure("memory"),
    ),
    "recursion": ("return f(x)", Failure("exception: RecursionError", "RecursionError")),
    "immediate exit": ("import os; os._exit(0)", Failure("crash: no result")),
    "immediate exit with a code": ("import os; os._exit(3)", Failure("crash: exit", "exit code 3")),
    "segmentation fault": (
        """
        from opcode import opmap
        wild = bytes([opmap["EXTENDED_ARG"], 127, opmap["EXTENDED_ARG"], 255, opmap["LOAD_CONST"], 255])
        exec((lambda: 0).__code__.replace(co_code=wild * 9))
        """,
        Failure("crash: SIGSEGV", "signal 11"),
    ),
    "closed stream": ("import os; os.close(3); return 1", Failure("crash: exit", "exit code 1")),
    "closed stream and a loop": (
        """
        import os
        os.close(3)
        while True: pass
        """,
        Failure("timeout"),
    ),
    "sys.exit": ("import sys; sys.exit(0)", Failure("exception: SystemExit", "SystemExit")),
    "interrupt": ("raise KeyboardInterrupt", Failure("exception: KeyboardInterrupt", "KeyboardInterrupt")),
    "generator exit": ("raise GeneratorExit", Failure("exception: GeneratorExit", "GeneratorExit")),
    "own exception": ("raise type('Wow' * 99, (KeyError,), {})", Failure("exception: KeyError", "KeyError")),
    "fork bomb": (
        """
        import os, time
        while True:
            if os.fork() == 0:
                time.sleep(20)
        """,
        Failure("exception: PermissionError", "PermissionError"),
    ),
    "thread bomb": (
        """
        import threading, time
        while True:
            threading.Thread(target=time.sleep, args=(20,)).start()
        """,
        Failure("exception: RuntimeError", "RuntimeError"),
    ),
    "giant string": ("return 'A' * 10**7", Failure("too long")),
    "giant number": ("return 10 ** 4000", Failure("too long")),
    "giant set": ("return set(range(10**5))", Failure("too long")),
    "shared giant": (
        """
        for _ in range(60):
            x = [x, x]
        return x
        """,
        Failure("too long"),
    ),
    "recursive list": ("x = []; x.append(x); return x", Failure("not a literal: nested too deeply")),
    "deep list": (
        """
        for _ in range(10**5):
            x = [x]
        return x
        """,
        Failure("not a literal: nested too deeply"),
    ),
    "generator": ("return (i for i in range(3))", Failure("not a literal: generator", "generator")),
    "iterator": (
        "return reversed([1])",
        Failure("not a literal: list_reverseiterator", "list_reverseiterator"),
    ),
    "string subclass": ("return type('str', (str,), {})('a')", Failure("not a literal: object", "str")),
    "nan": ("return float('nan')", Failure("not a literal: float", "float")),
    "complex": ("return 1j", Failure("not a literal: complex", "complex")),
    "nested subclass": (
        "return [1, {'a': (type('I', (int,), {})(1),)}]",
        Failure("not a literal: object", "I"),
    ),
}


def define(body: str) -> str:
    return "def f(x):\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ")


@pytest.mark.parametrize("name", OUTCOMES)
def test_attack_ends_as_a_category_and_leaves_the_others_alone(name, bench):
    body, expected = OUTCOMES[name]
    assert bench.outcome(define(body)) == expected
    assert not [child for pid in bench.pool.pids for child in psutil.Process(pid).children(recursive=True)]


@pytest.mark.parametrize(
    ("program", "category"),
    [
        ("def f(x: return", "syntax"),
        ("def f(x):\n    return '\0'", "syntax"),
        ("x = " + "(" * 5000 + ")" * 5000 + "\ndef f(x): return 1", "syntax"),
        ("def g(x):\n    return 1", "no entry function"),
        ("f = 3", "exception: TypeError"),
        ("import ctypes\ndef f(x):\n    return ctypes.string_at(0)", "exception: ModuleNotFoundError"),
        ("import numpy\ndef f(x):\n    return 1", "exception: ModuleNotFoundError"),
        ("raise ValueError\ndef f(x):\n    return 1", "exception: ValueError"),
        ("while True: pass", "timeout"),
    ],
)
def test_programs_that_fail_before_their_function_runs(program, category, bench):
    assert bench.outcome(program).category == category


def test_output_is_discarded(bench, capfd):
    flood = """
        import os, sys
        for _ in range(200):
            os.write(1, b"A" * 65536); os.write(2, b"B" * 65536); print("C" * 65536)
            print("D" * 65536, file=sys.stderr)
        return 1
    """
    assert bench.outcome(define(flood)) == Value("1")
    assert capfd.readouterr() == ("", "")


def test_what_is_sent_past_the_result_is_not_read(bench):
    flood = """
        import os
        for descriptor in range(3, 64):
            try:
                for _ in range(4000): os.write(descriptor, b"A" * 65536)
            except OSError: pass
    """
    assert bench.outcome(define(flood)).category == "crash: exit"


def test_no_descriptor_but_its_own_is_open(bench):
    look = """
        import os
        found = []
        for descriptor in range(1024):
            try: os.lseek(descriptor, 0, os.SEEK_CUR)
            except OSError as error:
                if error.errno == 9: continue
            found.append(descriptor)
        return found
    """
    assert bench.outcome(define(look)) == Value("[0, 1, 2, 3]")


def test_the_environment_is_built_from_nothing(bench, monkeypatch):
    monkeypatch.setenv("SECRET", "canary")
    outcome = bench.outcome(define("import os, sys; return sorted(os.environ), sys.argv, sys.path"))
    assert outcome == Value(
        "(['LANG', 'OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'PYTHONHASHSEED'], [''], [])"
    )


def test_a_program_that_forges_its_report_only_claims_an_answer(bench):
    assert bench.outcome(define('import os; os.write(3, b"value 41\\n"); os._exit(0)')) == Value("41")
    for text in (
        b"value a + 1\n",
        b"value __import__('os')\n",
        b"value " + b"9" * 501 + b"\n",
        b"\xff\xfe\n",
    ):
        assert isinstance(bench.outcome(define(f"import os; os.write(3, {text!r}); os._exit(0)")), Failure)
    crash = define('import os; os.write(3, b"value 41\\n"); os._exit(1)')
    assert bench.outcome(crash).category == "crash: exit"


def test_the_next_program_finds_the_builtins_whole(bench):
    patch = "import builtins, math\nbuiltins.sorted = builtins.abs = math.sin = None\n" + define("return 1")
    assert bench.outcome(patch) == Value("1")


def test_a_program_that_waits_is_stopped_by_the_wall_clock_and_tried_twice(bench, caplog):
    limits = Limits(cpu_seconds=5, wall_seconds=0.3)
    for body in ("import time; time.sleep(60)", "import queue; queue.Queue().get()"):
        assert bench.outcome(define(body), limits=limits) == Failure("stalled")
    assert caplog.text.count("stood still") == 4
