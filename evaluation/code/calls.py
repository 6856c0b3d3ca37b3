"""Programs whose functions are called: as jobs for the sandbox, and what came of them."""

import base64
import marshal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from populora.verifier.sandbox import Failure, Harness, Job, Limits, Run, Value

MEMORY_MIB = 2048


@dataclass(frozen=True)
class Results:
    """What calls gave, up to the first that gave nothing."""

    texts: tuple[str, ...]
    """As :func:`populora.verifier.harness.described` writes them."""
    seconds: tuple[float, ...]
    """CPU time of each."""
    failure: Failure | None = None
    """Why the call after these gave nothing."""


def encoded(arguments: Sequence[Any]) -> str:
    """Return the arguments of one call as the sandbox takes them."""
    return base64.b64encode(marshal.dumps(list(arguments), 2)).decode()


def call_job(
    program: str, entry: str, inputs: tuple[str, ...], seconds: float, limits: Limits, prelude: str = ""
) -> Job:
    """Return the job that runs a program and calls what ``entry`` gives with each of the encoded inputs.

    Args:
        program: Its source.
        entry: Expression in the program's namespace.
        inputs: Encoded arguments of each call.
        seconds: CPU time of one call.
        limits: Of all calls together; the longest result is that of one.
        prelude: Source that runs before the program.
    """
    return Job(program, inputs, limits, harness=Harness("call", prelude, entry, seconds))


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
        return float(time), text if text[:1] in ("=", "~") else ""
    except ValueError:
        return 0.0, ""
