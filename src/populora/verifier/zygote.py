"""The process programs run in: preloaded and stripped once, it forks one child per program and never sees one itself.

Runs as a script on the standard library alone. It serves one program at a time over a control socket
(SOCK_SEQPACKET, its standard input):

- trainer to zygote: ``LIMITS`` (CPU seconds, wall seconds, bytes of memory), with a stream socket attached
- zygote to trainer: ``REPLY`` (wait status, CPU seconds, who ended the program)

Program and results travel through the stream socket, between trainer and child only:

- trainer to child: JSON ``[program, [arguments, …], longest literal]``
- child to trainer: one line per input, ``value LITERAL`` or the reason why there is none

Expected answers never come here, so a program that takes over its own process can only choose its own answer.
"""

import ast
import builtins
import contextlib
import ctypes
import gc
import importlib
import json
import math
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from types import CodeType, ModuleType
from typing import Any, NoReturn

# From here on this file's functions keep the builtins of now, whatever a program patches.
globals()["__builtins__"] = dict(vars(builtins))

LIMITS = struct.Struct("=ddQ")
REPLY = struct.Struct("=idB")
ENDED, OUT_OF_CPU, OUT_OF_WALL = range(3)
READY = b"ready"

ENTRY = "f"
MAX_DEPTH = 100
MAX_DESCRIPTORS = 16
CONTROL, NULL, ERRORS, STREAM = range(4)  # descriptors; STREAM only in a child, whose first three are null
FIRST_UID, UIDS = 61_184, 4_096  # no account lives there
PRELOADED = (
    "__future__", "abc", "array", "ast", "base64", "binascii", "bisect", "calendar", "cmath", "codecs",
    "collections", "collections.abc", "colorsys", "contextlib", "copy", "copyreg", "csv", "dataclasses",
    "datetime", "decimal", "difflib", "enum", "fractions", "functools", "graphlib", "hashlib", "heapq", "hmac",
    "html", "itertools", "json", "keyword", "locale", "math", "numbers", "operator", "pprint", "queue",
    "random", "re", "reprlib", "statistics", "string", "struct", "textwrap", "time", "token", "tokenize",
    "types", "typing", "unicodedata", "warnings", "zlib", "_strptime", "encodings.ascii", "encodings.hex_codec",
    "encodings.latin_1", "encodings.rot_13", "encodings.unicode_escape", "encodings.utf_16", "encodings.utf_16_be",
    "encodings.utf_16_le", "encodings.utf_32",
)  # fmt: skip

_NAME: Callable[[type], str] = type.__dict__["__name__"].__get__
_MRO: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
_EXCEPTIONS = frozenset(
    kind for kind in vars(builtins).values() if isinstance(kind, type) and issubclass(kind, BaseException)
)
_write, _exit, _modules = os.write, os._exit, sys.modules
_prctl = ctypes.CDLL(None).prctl


class NotLiteral(Exception):
    """A result that is no literal, or none short enough; the message is the line to report."""


def literal(value: object, max_chars: int) -> str:
    """Return the text of a plain value.

    Only exact built-in types count, so no code of the program takes part.

    Raises:
        NotLiteral: a part of ``value`` is of another type, or the text is longer than ``max_chars``.
    """
    text = []
    room = max_chars
    for piece in _pieces(value, max_chars, 0):
        room -= len(piece)
        if room < 0:
            raise NotLiteral("long")
        text.append(piece)
    return "".join(text)


def _pieces(value: Any, max_chars: int, depth: int) -> Iterator[str]:
    kind = type(value)
    if depth > MAX_DEPTH:
        raise NotLiteral("deep")
    if kind is list:
        yield from _items("[", value, "]", max_chars, depth)
    elif kind is tuple:
        yield from _items("(", value, ",)" if len(value) == 1 else ")", max_chars, depth)
    elif kind is set and value:
        yield from _items("{", value, "}", max_chars, depth)
    elif kind is dict:
        yield "{"
        for index, (key, item) in enumerate(value.items()):
            yield ", " if index else ""
            yield from _pieces(key, max_chars, depth + 1)
            yield ": "
            yield from _pieces(item, max_chars, depth + 1)
        yield "}"
    else:
        yield _atom(value, kind, max_chars)


def _items(start: str, values: Any, end: str, max_chars: int, depth: int) -> Iterator[str]:
    yield start
    for index, value in enumerate(values):
        yield ", " if index else ""
        yield from _pieces(value, max_chars, depth + 1)
    yield end


def _atom(value: Any, kind: type, max_chars: int) -> str:
    if kind is str or kind is bytes:
        fits = len(value) <= max_chars
    elif kind is int:
        fits = value.bit_length() <= 3.33 * max_chars + 1
    elif kind is bool or value is None or kind is set or (kind is float and math.isfinite(value)):
        fits = True
    else:
        raise NotLiteral(f"type {_NAME(kind)}")
    if not fits:
        raise NotLiteral("long")
    return repr(value)


def outcome(code: CodeType, arguments: tuple[Any, ...], max_chars: int) -> str:
    """Run the program afresh, call its entry function, and return the line to report."""
    module = ModuleType("program")
    _modules["program"] = module
    namespace = vars(module)
    namespace["__builtins__"] = builtins
    try:
        exec(code, namespace)  # noqa: S102
        if ENTRY not in namespace:
            return "missing"
        return f"value {literal(namespace[ENTRY](*arguments), max_chars)}"
    except NotLiteral as error:
        return str(error)
    except MemoryError:
        return "memory"
    except BaseException as error:  # noqa: BLE001  a program may raise anything
        return f"exception {_exception_name(error)}"


def _exception_name(error: BaseException) -> str:
    return next(_NAME(kind) for kind in _MRO(type(error)) if kind in _EXCEPTIONS)


def _compile(program: str) -> CodeType | str:
    try:
        return compile(program, "<program>", "exec", dont_inherit=True)
    except MemoryError:
        return "memory"
    except (SyntaxError, ValueError, RecursionError, OverflowError):
        return "syntax"


def run_program() -> None:
    """Answer the one request in the stream; every argument is parsed before the program's own code runs."""
    program, inputs, max_chars = json.loads(b"".join(iter(lambda: os.read(STREAM, 1 << 16), b"")))
    calls = [ast.literal_eval(f"({arguments},)") for arguments in inputs]
    code = _compile(program)
    for arguments in calls:
        line = code if isinstance(code, str) else outcome(code, arguments, max_chars)
        rest = f"{line}\n".encode()
        while rest:
            rest = rest[_write(STREAM, rest) :]


def enter_child(stream: int, zygote: int, cpu_seconds: float, memory: int) -> None:
    """Give up the zygote's descriptors, its freedom to live on, and resources beyond the limits."""
    die_with(zygote)
    os.dup2(stream, STREAM)
    os.dup2(NULL, CONTROL)
    os.dup2(NULL, ERRORS)
    os.closerange(STREAM + 1, MAX_DESCRIPTORS)
    seconds = math.ceil(cpu_seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    gc.enable()


def watch(child: int, cpu_seconds: float, wall_seconds: float) -> tuple[int, float, int]:
    """Wait for the child, kill it at a limit, and return the fields of ``REPLY``; end with the trainer."""
    pidfd = os.pidfd_open(child)
    clock = (~child << 3) | 2  # the child's CPU clock
    deadline = time.monotonic() + wall_seconds
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    poll.register(CONTROL, select.POLLIN)
    reason = ENDED
    while True:
        left = min(cpu_seconds - time.clock_gettime(clock), deadline - time.monotonic())
        ready = [descriptor for descriptor, _ in poll.poll(max(0, math.ceil(left * 1000)))]
        if ready:
            break
        if time.clock_gettime(clock) >= cpu_seconds:
            reason = OUT_OF_CPU
            break
        if time.monotonic() >= deadline:
            reason = OUT_OF_WALL
            break
    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    os.close(pidfd)
    if ready and pidfd not in ready:
        _exit(0)
    return status, usage.ru_utime + usage.ru_stime, reason


def serve(confine: Callable[[], None]) -> None:
    """Fork a child, which confines itself, for each request until the trainer closes the control socket."""
    control = socket.socket(fileno=CONTROL)
    zygote, own_memory = os.getpid(), _address_space()
    control.send(READY)
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, LIMITS.size, 1)
        if not message:
            return
        cpu_seconds, wall_seconds, memory = LIMITS.unpack(message)
        child = os.fork()
        if child == 0:
            try:
                enter_child(descriptors[0], zygote, cpu_seconds, own_memory + memory)
                confine()
                run_program()
                _exit(0)
            finally:
                _exit(1)
        os.close(descriptors[0])
        control.send(REPLY.pack(*watch(child, cpu_seconds, wall_seconds)))


def _address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends."""
    _prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        _exit(1)


def drop_root() -> None:
    """Become a user no one else is; without the right to, stay: the trainer's probe says whether that will do."""
    uid = FIRST_UID + os.getpid() % UIDS
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)


def load_confinement() -> Callable[[], None]:
    """Return what confines a child, from the file beside this one."""
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    confine: Callable[[], None] = importlib.import_module("confinement").confinement()
    return confine


def preload() -> None:
    """Import what programs may use; nothing else can be imported afterwards, on any installation."""
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for name in ("ctypes", "_ctypes", "confinement"):
        sys.modules.pop(name, None)
    sys.meta_path.clear()
    sys.path.clear()
    sys.argv[:] = [""]


def main() -> NoReturn:
    """Strip this process, then serve: ``zygote.py TRAINER_PID confined|unsafe``."""
    trainer, unsafe = int(sys.argv[1]), sys.argv[2] == "unsafe"
    confine = (lambda: None) if unsafe else load_confinement()
    preload()
    for kind, most in (("CORE", 0), ("FSIZE", 0), ("NOFILE", MAX_DESCRIPTORS)):
        resource.setrlimit(getattr(resource, f"RLIMIT_{kind}"), (most, most))
    drop_root()
    die_with(trainer)
    gc.collect()
    gc.disable()
    gc.freeze()
    with contextlib.suppress(ConnectionError):
        serve(confine)
    _exit(0)


if __name__ == "__main__":
    main()
