"""What a sandbox is asked and what it answers; how programs are run is in :mod:`populora.verifier.pool`."""

import builtins
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from populora.tasks.literals import canonical

_RESULT_TYPES = frozenset(
    {
        "builtin_function_or_method", "bytearray", "complex", "date", "datetime", "Decimal", "dict_items",
        "dict_keys", "dict_values", "ellipsis", "enumerate", "filter", "float", "function", "generator",
        "list_iterator", "list_reverseiterator", "map", "mappingproxy", "memoryview", "method", "module",
        "range", "reversed", "type", "zip",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """What one program may use, over all its inputs."""

    cpu_seconds: float = 1.0
    wall_seconds: float = 10.0
    """Backstop for programs that wait; reaching it is retried once, since it may be the machine's fault."""
    memory_mib: int = 512
    """Address space beyond what an idle interpreter has."""
    literal_chars: int = 1000
    """Longest result."""


@dataclass(frozen=True)
class Harness:
    """A way to run a program other than afresh for each call of its ``f``; nothing is banned there."""

    style: Literal["call", "script"]
    """As :mod:`populora.verifier.harness` describes."""
    prelude: str = ""
    """Source that runs before the program, in the same namespace."""
    entry: str = ""
    """Expression that gives what is called."""
    seconds: float = 1.0
    """CPU time of one call or run."""


@dataclass(frozen=True)
class Job:
    """A program and the inputs its entry function ``f`` is called with, one after the other.

    The program starts afresh for each input, yet all share one process: one that crashes or runs into a limit
    takes the inputs after it along.
    """

    program: str
    inputs: tuple[str, ...]
    """Canonical argument lists, e.g. ``[1, 2], 3``."""
    limits: Limits = Limits()
    banned_modules: tuple[str, ...] = ()
    """Modules whose import raises ImportError in the program's own code; the standard library's is free."""
    banned_names: tuple[str, ...] = ()
    """Builtins that the program's own code does not have."""
    harness: Harness | None = None
    """Another way to run the program; inputs and results are then as that way has them."""


@dataclass(frozen=True)
class Value:
    """A plain result; its type is in its text: 1, True, 1.0, ``Decimal('1')`` and ``Fraction(1, 1)`` all differ."""

    text: str
    """Canonical literal (:mod:`populora.tasks.literals` has the table of types); or as a harness reports it."""


@dataclass(frozen=True)
class Failure:
    """Why there is no result."""

    category: str
    """One of few stable strings: ``timeout``, ``memory``, ``crash: SIGSEGV``, ``exception: KeyError`` …"""
    detail: str = ""


Outcome = Value | Failure


@dataclass(frozen=True)
class Run:
    """What came of one job."""

    outcomes: tuple[Outcome, ...]
    """One per input."""
    cpu_seconds: float
    peak_mib: float
    """Most memory resident at once, of which an idle interpreter has about 20 MiB."""


class Sandbox(Protocol):
    """Runs programs that nobody vouches for."""

    async def run(self, jobs: Iterable[Job]) -> list[Run]:
        """Run all jobs; the results are in the jobs' order."""
        ...

    def stream(self, jobs: Iterable[Job]) -> AsyncGenerator[tuple[int, Run], None]:
        """Yield (index of the job, result) as results come; closing the generator ends what still runs."""
        ...

    def close(self) -> None:
        """End every process."""
        ...


def read_outcomes(job: Job, report: bytes, ending: Failure | None) -> tuple[Outcome, ...]:
    """Make outcomes of what a program's process wrote, of which nothing is believed but the results themselves.

    Args:
        job: What was run.
        report: Lines as described in :mod:`populora.verifier.protocol`, or anything else.
        ending: How the process ended, None if in good order.
    """
    count = len(job.inputs)
    lines = report.decode("utf-8", "replace").split("\n")[:-1]
    read = _read_line if job.harness is None else _read_text
    outcomes = [read(line, job.limits) for line in lines[: count - 1 if ending else count]]
    return (*outcomes, *[ending or Failure("crash: no result")] * (count - len(outcomes)))


def _read_text(line: str, limits: Limits) -> Outcome:
    kind, _, rest = line.partition(" ")
    if kind == "value":
        return Failure("crash: no result")
    if kind == "text":
        return Value(rest) if len(rest) <= 4 * limits.literal_chars + 100 else Failure("too long")
    return _read_line(line, limits)


def _read_line(line: str, limits: Limits) -> Outcome:
    kind, _, rest = line.partition(" ")
    match kind:
        case "value":
            text = canonical(rest, limits.literal_chars)
            return Failure("not a literal: nested too deeply") if text is None else Value(text)
        case "type":
            return Failure(f"not a literal: {rest if rest in _RESULT_TYPES else 'object'}", rest[:100])
        case "exception":
            return Failure(f"exception: {rest if _is_exception(rest) else 'other'}", rest[:100])
        case "long":
            return Failure("too long")
        case "deep":
            return Failure("not a literal: nested too deeply")
        case "missing":
            return Failure("no entry function")
        case "memory" | "syntax":
            return Failure(kind)
    return Failure("crash: no result")


def _is_exception(name: str) -> bool:
    kind = getattr(builtins, name, None)
    return isinstance(kind, type) and issubclass(kind, BaseException)
