"""Programs whose functions are called: as jobs for the sandbox, and what came of them."""

import base64
import marshal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from populora.verifier.harness import MAX_BYTES
from populora.verifier.sandbox import Failure, Harness, Job, Limits, Run, Value

MEMORY_MIB = 4096
"""As EvalPlus allows; a task's canonical solution takes more than 1 GiB."""
_MAX_CHARS = 10 * MAX_BYTES


@dataclass(frozen=True)
class Results:
    """What calls gave, up to the first that gave nothing."""

    texts: tuple[str, ...]
    """As :func:`populora.verifier.harness.described` writes them."""
    seconds: tuple[float, ...]
    """CPU time of each."""
    failure: Failure | None = None
    """Why the call after these gave nothing."""


@dataclass(frozen=True)
class Times:
    """Limits in seconds."""

    one_call: float
    """CPU time of one call, and of running the program before the first."""
    all_calls: float
    """CPU time of everything."""
    wall: float
    """Wall-clock backstop."""


def encoded(arguments: Sequence[Any]) -> str:
    """Return the arguments of one call as the sandbox takes them."""
    return base64.b64encode(marshal.dumps(list(arguments), 2)).decode()


def call_job(program: str, entry: str, inputs: tuple[str, ...], times: Times, prelude: str = "") -> Job:
    """Return the job that runs a program and calls what ``entry`` gives with each of the encoded inputs.

    Args:
        program: Its source.
        entry: Expression in the program's namespace.
        inputs: Encoded arguments of each call.
        times: How long it may take.
        prelude: Source that runs before the program.
    """
    limits = Limits(times.all_calls, times.wall, MEMORY_MIB, _MAX_CHARS)
    return Job(program, inputs, limits, harness=Harness("call", prelude, entry, times.one_call))


def results(run: Run) -> Results:
    """Read what came of such a job."""
    texts: list[str] = []
    seconds: list[float] = []
    for outcome in run.outcomes:
        if isinstance(outcome, Failure):
            return Results(tuple(texts), tuple(seconds), outcome)
        time, text = _line(outcome)
        if not text:
            return Results(tuple(texts), tuple(seconds), Failure("crash: no result"))
        texts.append(text)
        seconds.append(time)
    return Results(tuple(texts), tuple(seconds))


def _line(value: Value) -> tuple[float, str]:
    time, _, text = value.text.partition(" ")
    try:
        return float(time), text if text[:1] in ("=", "~", "#") else ""
    except ValueError:
        return 0.0, ""
