"""The process programs run in: preloaded and stripped once, it forks one child per program and never sees one itself.

Works on the standard library alone, and talks to the trainer as :mod:`populora.verifier.protocol` says.
"""

import builtins
import contextlib
import ctypes
import gc
import importlib
import json
import marshal
import math
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from types import CodeType, ModuleType
from typing import Any, NoReturn

from populora.verifier.clock import shift
from populora.verifier.confinement import MAX_DESCRIPTORS, child_confinement, confine
from populora.verifier.encoding import NotLiteral, literal
from populora.verifier.failing import compiled, complaint
from populora.verifier.harness import STYLES
from populora.verifier.protocol import ENDED, LIMITS, OUT_OF_CPU, OUT_OF_WALL, REPLY, REQUIRED

# From here on this file's functions keep the builtins of now, whatever a program patches.
globals()["__builtins__"] = dict(vars(builtins))

ENTRY = "f"
DESCRIPTOR_SPACE = socket.CMSG_SPACE(4)
CONTROL, NULL, ERRORS, STREAM = range(4)  # descriptors; STREAM only in a child, whose first three are null
PRELOADED = (
    "__future__", "abc", "array", "ast", "base64", "binascii", "bisect", "calendar", "cmath", "codecs",
    "collections", "collections.abc", "colorsys", "contextlib", "copy", "copyreg", "csv", "dataclasses",
    "datetime", "decimal", "difflib", "enum", "fractions", "functools", "graphlib", "hashlib", "heapq", "hmac",
    "html", "itertools", "json", "keyword", "locale", "math", "numbers", "operator", "pprint", "queue",
    "random", "re", "reprlib", "statistics", "string", "struct", "textwrap", "time", "token", "tokenize",
    "types", "typing", "unicodedata", "warnings", "zlib", "_strptime", "encodings.ascii", "encodings.big5",
    "encodings.cp1252", "encodings.euc_jp", "encodings.gbk", "encodings.hex_codec", "encodings.latin_1",
    "encodings.rot_13", "encodings.shift_jis", "encodings.unicode_escape", "encodings.utf_16", "encodings.utf_16_be",
    "encodings.utf_16_le", "encodings.utf_32", "encodings.utf_7", "encodings.utf_8_sig",
)  # fmt: skip

_write, _exit, _modules, _import = os.write, os._exit, sys.modules, builtins.__import__
_prctl = ctypes.CDLL(None).prctl


def outcome(
    code: CodeType, arguments: tuple[Any, ...], max_chars: int, builtin: Mapping[str, Any] | ModuleType
) -> str:
    """Run the program afresh, call its entry function, and return the line to report."""
    module = ModuleType("program")
    _modules["program"] = module
    namespace = vars(module)
    namespace["__builtins__"] = builtin
    try:
        exec(code, namespace)  # noqa: S102
        if ENTRY not in namespace:
            return "missing"
        return f"value {literal(namespace[ENTRY](*arguments), max_chars)}"
    except NotLiteral as error:
        return str(error)
    except BaseException as error:  # noqa: BLE001  a program may raise anything
        return complaint(error)


def _builtins_without(modules: Collection[str], names: Collection[str]) -> Mapping[str, Any] | ModuleType:
    """Return the builtins of a program that may not use some names or import some modules."""
    if not modules and not names:
        return builtins

    def guarded(name: str, *args: Any, **kwargs: Any) -> ModuleType:
        if name.partition(".")[0] in modules:
            raise ImportError(f"{name} is banned", name=name)
        return _import(name, *args, **kwargs)

    kept = {name: value for name, value in vars(builtins).items() if name not in names}
    return kept | {"__import__": guarded}


def run_program() -> None:
    """Answer the one request in the stream."""
    program, inputs, max_chars, modules, names, harness = marshal.loads(_read_all())
    if harness:
        style, prelude, entry, seconds = harness
        lines = STYLES[style](program, prelude, entry, inputs, max_chars, seconds)
    else:
        lines = outcomes(program, inputs, max_chars, _builtins_without(modules, names))
    for line in lines:
        rest = f"{line}\n".encode()
        while rest:
            rest = rest[_write(STREAM, rest) :]


def _read_all() -> bytes:
    content = chunk = os.read(STREAM, 1 << 16)
    while chunk:
        chunk = os.read(STREAM, 1 << 16)
        content += chunk
    return content


def outcomes(
    program: str, inputs: list[str], max_chars: int, builtin: Mapping[str, Any] | ModuleType
) -> Iterator[str]:
    """Yield a line for each input; every argument is evaluated, as literals go, before the program's own code runs."""
    calls = [eval(f"({arguments},)", {"__builtins__": {"set": set}}) for arguments in inputs]
    code = compiled(program)
    for arguments in calls:
        yield code if isinstance(code, str) else outcome(code, arguments, max_chars, builtin)


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


def watch(
    child: int, cpu_seconds: float, wall_seconds: float, poll: select.poll
) -> tuple[int, float, int, int]:
    """Wait for the child, kill it at a limit, and return the fields of ``REPLY``; end with the trainer."""
    pidfd = os.pidfd_open(child)
    clock = (~child << 3) | 2  # the child's CPU clock
    deadline = time.monotonic() + wall_seconds
    poll.register(pidfd, select.POLLIN)
    left, reason = min(cpu_seconds, wall_seconds), ENDED
    while not (ready := poll.poll(max(0, math.ceil(left * 1000)))):
        cpu_left, wall_left = cpu_seconds - time.clock_gettime(clock), deadline - time.monotonic()
        left = min(cpu_left, wall_left)
        if left <= 0:
            reason = OUT_OF_CPU if cpu_left <= 0 else OUT_OF_WALL
            break
    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    poll.unregister(pidfd)
    os.close(pidfd)
    if ready and pidfd not in [descriptor for descriptor, _ in ready]:
        _exit(0)
    return status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10, reason


def serve(control: socket.socket, own_memory: int, confine_child: Callable[[], None]) -> None:
    """Fork a child, which confines itself further, for each request until the trainer closes the control socket."""
    zygote = os.getpid()
    poll = select.poll()
    poll.register(CONTROL, select.POLLIN)
    while True:
        message, attached, _, _ = control.recvmsg(LIMITS.size, DESCRIPTOR_SPACE)
        if not message:
            return
        cpu_seconds, wall_seconds, memory = LIMITS.unpack(message)
        stream = int.from_bytes(attached[0][2], sys.byteorder)
        child = os.fork()
        if child == 0:
            try:
                enter_child(stream, zygote, cpu_seconds, own_memory + memory)
                confine_child()
                run_program()
                _exit(0)
            finally:
                _exit(1)
        os.close(stream)
        control.send(REPLY.pack(*watch(child, cpu_seconds, wall_seconds, poll)))


def _stay() -> None:
    """Confine a child no further than its zygote is, where the platform has no filter."""


def _address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends."""
    _prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        _exit(1)


def preload(folders: list[str], names: list[str]) -> None:
    """Import what programs may use; nothing else can be imported afterwards, on any installation.

    Args:
        folders: Where to look, beside the standard library.
        names: Modules beside those of the standard library.
    """
    sys.path += folders
    for name in (*PRELOADED, *names):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("ctypes", "_ctypes", "populora")]:
        del sys.modules[name]
    sys.meta_path.clear()
    sys.path.clear()
    sys.argv[:] = [""]


def main() -> NoReturn:
    """Strip this process, then serve.

    Arguments are the trainer's pid, ``confined`` or ``unsafe``, a clock shift, and what to preload as JSON.
    """
    trainer, unsafe, seconds = int(sys.argv[1]), sys.argv[2] == "unsafe", int(sys.argv[3])
    control = socket.socket(fileno=CONTROL)
    preload(*json.loads(sys.argv[4]))
    if seconds:
        shift(seconds)
    own_memory, confine_child = _address_space(), child_confinement()
    layers = confine()
    die_with(trainer)
    missing = {layer.name for layer in layers if layer.missing}
    control.send(json.dumps(layers).encode())
    if missing.intersection(REQUIRED) and not unsafe:
        _exit(1)
    if "seccomp" in missing:
        confine_child = _stay
    gc.collect()
    gc.disable()
    gc.freeze()
    with contextlib.suppress(ConnectionError):
        serve(control, own_memory, confine_child)
    _exit(0)
