"""Programs that try to leave, break or cheat the sandbox, run without the screening that would stop most of them."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import psutil
import pytest

from populora.verifier.confinement import ALLOWED, filter_program
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
    assert outcome == Value("(['LANG', 'PYTHONHASHSEED'], [''], [])")


ESCAPES = {
    "read a file": "return len(open('/etc/passwd').read())",
    "look at a file": "return os.stat('/').st_mode",
    "list a folder": "return len(os.listdir('/'))",
    "look at another process": "return len(os.readlink(f'/proc/{os.getpid()}/fd/0'))",
    "create a file": "return os.open('@LOOT@', os.O_CREAT | os.O_WRONLY)",
    "make a folder": "os.mkdir('@LOOT@'); return 1",
    "connect": "s = socket.socket(); s.connect(('127.0.0.1', @PORT@)); return s.send(b'x')",
    "send a datagram": "return socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', @PORT@))",
    "make a socket pair": "return len(socket.socketpair())",
    "make a pipe": "return len(os.pipe())",
    "hold memory outside the limits": "return os.memfd_create('loot')",
    "signal another process": "os.kill(os.getppid(), 0); return 1",
    "signal itself": "os.kill(os.getpid(), 0); return 1",
    "change a limit": "import resource; return len(resource.getrlimit(resource.RLIMIT_CPU))",
    "change its priority": "return os.nice(1)",
    "change folder": "os.chdir('/tmp'); return 1",
    "watch files": "import select; return select.epoll().fileno()",
}


@pytest.fixture(scope="module")
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("name", ESCAPES)
def test_an_escape_that_works_without_confinement_fails_with_it(name, bench, unsafe_bench, listener):
    folder = tempfile.mkdtemp(dir="/tmp")
    os.chmod(folder, 0o777)
    loot = Path(folder, "loot")
    body = "import os, socket; " + ESCAPES[name].replace("@LOOT@", str(loot)).replace("@PORT@", str(listener))
    assert bench.outcome(define(body)) == Failure("exception: PermissionError", "PermissionError")
    assert not loot.exists()
    assert isinstance(unsafe_bench.outcome(define(body)), Value)
    shutil.rmtree(folder)


def test_a_command_cannot_be_run(bench, unsafe_bench):
    run = define("import os; os.execv('/bin/sh', ['sh', '-c', 'echo value 41 >&3'])")
    assert bench.outcome(run) == Failure("exception: PermissionError", "PermissionError")
    assert unsafe_bench.outcome(run) == Value("41")


@pytest.mark.parametrize(
    ("body", "category"),
    [
        ("import os; os.fork()", "exception: BlockingIOError"),
        ("import threading; threading.Thread(target=f).start()", "exception: RuntimeError"),
        ("import os; os.kill(os.getpid(), 9)", "crash: SIGKILL"),
        ("import os; os.kill(os.getpid(), 11)", "crash: SIGSEGV"),
        ("import os; os.kill(os.getpid(), 40)", "crash: signal"),
        ("return len(bytearray(1 << 32))", "memory"),
        ("import os; os.write(os.open('/tmp', os.O_TMPFILE | os.O_RDWR), b'x')", "exception: OSError"),
    ],
)
def test_resource_limits_hold_without_confinement(body, category, unsafe_bench):
    assert unsafe_bench.outcome(define(body)).category == category


ALWAYS_EQUAL = """
class T:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
    def __repr__(self): return "41"
def f(x):
    return T()
"""
PATCHED = """
import builtins, json
builtins.repr = builtins.str = lambda value: "41"
builtins.isinstance = builtins.all = lambda *a: True
builtins.type = lambda *a: int
builtins.len = lambda value: 1
json.dumps = lambda *a, **k: "41"
class Any:
    def __eq__(self, other): return True
def f(x):
    return Any()
"""
FRAME_PEEK = """
import sys
def f(x):
    frame = sys._getframe()
    while frame is not None:
        for place in (frame.f_locals, frame.f_globals):
            if "gold" in place: return place["gold"]
        frame = frame.f_back
    return "not found"
"""
HEAP_PEEK = """
import gc
def f(x):
    for thing in gc.get_objects():
        if type(thing) is dict and "gold" in thing: return thing["gold"]
    return "not found"
"""
NAIVE = """
import sys
program, gold = sys.argv[1], int(sys.argv[2])
space = {}
exec(program, space)
print(space["f"](0) == gold)
"""


@pytest.mark.parametrize(
    ("program", "honest"),
    [
        (ALWAYS_EQUAL, Failure("not a literal: object", "T")),
        (PATCHED, Failure("not a literal: object", "Any")),
        (FRAME_PEEK, Value("'not found'")),
        (HEAP_PEEK, Value("'not found'")),
    ],
)
def test_cheats_that_fool_a_comparison_in_their_own_process_get_nowhere(program, honest, bench):
    naive = subprocess.run([sys.executable, "-c", NAIVE, program, "41"], capture_output=True, check=True)
    assert naive.stdout == b"True\n"
    assert bench.outcome(program) == honest


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


def test_a_program_that_stops_itself_is_killed(unsafe_bench):
    stop = define("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)")
    assert unsafe_bench.outcome(stop, limits=Limits(wall_seconds=0.3)) == Failure("stalled")


def test_killing_the_zygote_hurts_no_one_else(bench, unsafe_bench):
    kill = define("import os; os.kill(os.getppid(), 9); return 1")
    assert bench.outcome(kill) == Failure("exception: PermissionError", "PermissionError")
    assert bench.pool.restarts == 0
    assert unsafe_bench.outcome(kill) == Failure("crash: sandbox")
    assert unsafe_bench.pool.restarts == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has an identity to give up")
def test_programs_of_root_run_as_someone_else(bench):
    assert all(min(psutil.Process(pid).uids()) >= 61_184 for pid in bench.pool.pids)


@pytest.mark.parametrize(
    ("header", "column"),
    [("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", 0), ("/usr/include/asm-generic/unistd.h", 1)],
)
def test_system_call_numbers_are_the_kernels(header, column):
    if not Path(header).exists():
        pytest.skip("the kernel's headers are not installed")
    numbers = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", Path(header).read_text()))
    assert {name: str(entry[column]) for name, entry in ALLOWED.items()}.items() <= numbers.items()


def test_an_unknown_architecture_has_no_filter():
    with pytest.raises(OSError, match="no system call filter for riscv64"):
        filter_program("riscv64")
