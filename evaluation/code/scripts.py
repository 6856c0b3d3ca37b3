"""Programs that read standard input: as jobs for the sandbox, and what came of them, by LiveCodeBench's rules."""

import ast
from decimal import Decimal, DecimalException

from populora.evaluation.code.calls import MEMORY_MIB, Results, Times
from populora.verifier.sandbox import Failure, Harness, Job, Limits, Run

_STARS = (
    "string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics", "itertools",
    "functools", "operator", "io", "sys", "json", "builtins", "typing",
)  # fmt: skip
_MODULES = (
    "string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics", "itertools",
    "functools", "operator", "io", "sys", "json",
)  # fmt: skip
PRELUDE = "\n".join(
    [
        *(f"from {name} import *" for name in _STARS),
        *(f"import {name}" for name in _MODULES),
        "sys.setrecursionlimit(50000)",
    ]
)
"""What the benchmark has every program begin with."""


def script_job(program: str, inputs: tuple[str, ...], times: Times, max_output: int) -> Job:
    """Return the job that runs a program once for each standard input.

    Args:
        program: Its source.
        inputs: Standard input of each run.
        times: How long it may take, where a run is a call.
        max_output: Bytes of the longest output of one run.
    """
    limits = Limits(times.all_calls, times.wall, MEMORY_MIB, max_output)
    return Job(program, inputs, limits, harness=Harness("script", PRELUDE, "", times.one_call))


def outputs(run: Run) -> Results:
    """Read what came of such a job: standard output of each run, up to the first that failed."""
    texts: list[str] = []
    for outcome in run.outcomes:
        if isinstance(outcome, Failure):
            return Results(tuple(texts), (), outcome)
        text = _literal(outcome.text)
        if text is None:
            return Results(tuple(texts), (), Failure("crash: no result"))
        texts.append(text)
    return Results(tuple(texts), ())


def _literal(text: str) -> str | None:
    try:
        value = ast.literal_eval(text) if text[:1] in ("'", '"') else None
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, str) else None


def same_output(expected: str, output: str) -> bool:
    """Whether an output is the expected one: line by line, without blanks around, or as numbers.

    Fractions are equal when they are the same double: expected ones have more digits than a program can print.
    """
    rights, givens = _lines(expected), _lines(output)
    return len(rights) == len(givens) and all(map(_same_line, rights, givens))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


def _same_line(right: str, given: str) -> bool:
    if right == given:
        return True
    rights, givens = right.split(), given.split()
    try:
        return len(rights) == len(givens) and all(map(_same_number, rights, givens))
    except (DecimalException, ValueError):
        return False


def _same_number(right: str, given: str) -> bool:
    return Decimal(right) == Decimal(given) or ("." in right and float(right) == float(given))
