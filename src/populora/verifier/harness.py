"""Ways of running a program other than calling its ``f``: as a module whose functions are tested, and as a script.

Works in the program's own process on the standard library alone, like the zygote. What it reports is only what the
program has to say for itself, as text: the trainer compares it, and it alone knows what is expected.
"""

import base64
import builtins
import marshal
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from types import CodeType, ModuleType
from typing import Any

from populora.verifier.failing import compiled, complaint
from populora.verifier.streams import Overflow, Streams, run_threads_inline

# From here on this file's functions keep the builtins of now, whatever a program patches.
globals()["__builtins__"] = dict(vars(builtins))

MAX_BYTES, MAX_ITEMS = 20_000, 4_000
"""Longest result that is reported in full: marshalled, and in items of a list or tuple."""
_DESCRIPTION_FACTOR = 10
"""How many times the CPU time of a call may go into the text of its result."""
_ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes})
_CONTAINERS = frozenset({list, tuple, set, frozenset})
_BASES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, int.__int__),
    (float, float.__float__),
    (complex, complex.__complex__),
    (str, str.__str__),
    (bytes, bytes.__bytes__),
)
_cpu_seconds, _set_timer, _modules = time.process_time, signal.setitimer, sys.modules
_set_max_digits, _max_digits = sys.set_int_max_str_digits, sys.get_int_max_str_digits


def call(program: str, prelude: str, entry: str, inputs: list[str], _: int, seconds: float) -> Iterator[str]:
    """Run a program once, call what it defines with each input, and yield a line for each call until one fails.

    Args:
        program: Its source.
        prelude: Source that runs before it, in the same namespace.
        entry: Expression that gives what is called, in the program's namespace.
        inputs: Arguments of each call: a marshalled sequence, in base64. The trainer made them.
        seconds: CPU time of one call, and of running the program; SIGPROF ends the process beyond.

    Yields:
        ``text SECONDS RESULT``, as :func:`described` writes it, or the reason why there is none.
    """
    arguments = [marshal.loads(base64.b64decode(text)) for text in inputs]
    code = compiled(program)
    if isinstance(code, str):
        yield code
        return
    try:
        _set_timer(signal.ITIMER_PROF, seconds)
        namespace = _run(prelude, code, "solution")
        function = eval(entry, namespace)
        for each in arguments:
            _set_timer(signal.ITIMER_PROF, seconds)
            before = _cpu_seconds()
            result = function(*each)
            taken = _cpu_seconds() - before
            _set_timer(signal.ITIMER_PROF, _DESCRIPTION_FACTOR * seconds)
            yield f"text {taken:.6f} {described(result)}"
    except BaseException as error:  # noqa: BLE001  a program may raise anything
        yield complaint(error)


def script(
    program: str, prelude: str, _: str, inputs: list[str], max_chars: int, seconds: float
) -> Iterator[str]:
    """Run a program as ``__main__`` once for each input on its standard input, and yield a line for each run.

    To leave by SystemExit is fine; threads run when they are started.

    Args:
        program: Its source.
        prelude: Source that runs before it, in the same namespace.
        inputs: Standard input of each run.
        max_chars: Longest standard output, in bytes.
        seconds: CPU time of one run; SIGPROF ends the process beyond.

    Yields:
        ``text OUTPUT``, the output as a string literal; or the reason why there is none.
    """
    code = compiled(program)
    run_threads_inline()
    for text in inputs:
        if isinstance(code, str):
            yield code
            continue
        streams = Streams(text, max_chars)
        _set_timer(signal.ITIMER_PROF, seconds)
        try:
            streams.install()
            _run(prelude, code, "__main__")
        except SystemExit:
            pass
        except BaseException as error:  # noqa: BLE001  a program may raise anything
            yield complaint(error)
            continue
        try:
            yield f"text {streams.output()!r}"
        except Overflow:
            yield "long"


STYLES = {"call": call, "script": script}


def _run(prelude: str, code: CodeType, name: str) -> dict[str, Any]:
    """Run a program in a module of its own and return its namespace."""
    module = ModuleType(name)
    _modules[name] = module
    namespace = vars(module)
    namespace["__builtins__"] = builtins
    exec(prelude, namespace)  # noqa: S102
    exec(code, namespace)  # noqa: S102
    return namespace


def described(value: Any) -> str:
    """Return a mark and the text of a result, the same for results that are equal and of the same types.

    The mark is ``=``, or ``~`` where the result's type only behaves like the one shown, or ``#`` before the digest of
    a result that is longer than ``MAX_BYTES`` or ``MAX_ITEMS``.
    """
    plain = _plain(value)
    if type(plain) in (list, tuple) and len(plain) > MAX_ITEMS:
        return f"#{_digest(type(plain).__name__, (plain[i : i + 1000] for i in range(0, len(plain), 1000)))}"
    packed = marshal.dumps(plain, 2)
    if len(packed) > MAX_BYTES:
        return f"#{sha256(packed).hexdigest()}"
    digits = _max_digits()
    _set_max_digits(0)
    text = repr(plain)
    _set_max_digits(digits)
    return f"{'=' if type(plain) is type(value) else '~'}{text}"


def _digest(kind: str, parts: Iterable[Any]) -> str:
    """Return the digest of a long sequence, which need not be in memory twice."""
    found = sha256(kind.encode())
    for part in parts:
        found.update(marshal.dumps(part, 2))
    return found.hexdigest()


def _plain(value: Any) -> Any:
    """Return what a value compares equal to among the plain types; an Ellipsis stands for anything else."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind in _CONTAINERS and _ATOMS.issuperset(map(type, value)):
        return value
    if isinstance(value, list | tuple | AbstractSet):
        base = next(base for base in (list, tuple, frozenset, set) if isinstance(value, base) or base is set)
        return base(map(_plain, value))
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    return _plain_atom(value)


def _plain_atom(value: Any) -> Any:
    for base, exact in _BASES:
        if isinstance(value, base):
            return exact(value)
    if isinstance(value, Decimal | Fraction):
        nearest = float(value)
        return nearest if nearest == value else ...
    if getattr(value, "shape", None) == ():  # a scalar of numpy
        return _plain(value.item())
    return ...
