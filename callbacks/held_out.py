"""Held-out problems and what members score on them."""

import dataclasses
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from populora.errors import ConfigError
from populora.records import Problem

EMBEDDED = "embedded"
LENGTHS = ("short", "medium", "long")
_FIELDS = {field.name for field in dataclasses.fields(Problem)}
_REQUIRED = {"task", "program", "inputs", "outputs"}
_LISTS = ("inputs", "outputs")


@dataclass(frozen=True)
class Scores:
    """Share of correct answers of one member, or of the base, after some iterations; each in [0, 1]."""

    iteration: int
    """Completed iterations."""
    member: str | None
    """None is the base."""
    born: int
    """Of the member that held the slot."""
    by_task: Mapping[str, float]
    by_length: Mapping[str, float]
    """By thirds of the programs' lengths in characters, ``short``, ``medium``, ``long``."""

    @property
    def mean(self) -> float:
        """Mean over the tasks."""
        return fmean(self.by_task.values())


def score(problems: Sequence[Problem], shares: Sequence[float]) -> tuple[dict[str, float], dict[str, float]]:
    """Average the shares of correct answers, one a problem, by task and by length."""
    by_task, by_length = defaultdict(list), defaultdict(list)
    for problem, length, share in zip(problems, _thirds(problems), shares, strict=True):
        by_task[problem.task].append(share)
        by_length[length].append(share)
    return _means(by_task), {length: fmean(by_length[length]) for length in LENGTHS if length in by_length}


def _means(groups: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {name: fmean(values) for name, values in groups.items()}


def _thirds(problems: Sequence[Problem]) -> list[str]:
    lengths = [len(problem.program) for problem in problems]
    bounds = np.quantile(lengths, [1 / 3, 2 / 3])
    return [LENGTHS[int(np.searchsorted(bounds, length))] for length in lengths]


def load_problems(source: str, tasks: Sequence[str], count: int, seed: int) -> tuple[Problem, ...]:
    """Return ``count`` problems of each task.

    Args:
        source: ``embedded`` for those that ship with the package, or a file with a JSON object a line whose
            keys are the fields of :class:`~populora.records.Problem`; of a file the first of each task are taken.
        tasks: Task types.
        count: Problems of each.
        seed: Of the draw from the embedded ones.

    Raises:
        ConfigError: the file is missing, a line of it is no problem, or a task has too few.
    """
    if source == EMBEDDED:
        from populora.embedded import held_out_problems

        return tuple(problem for task in tasks for problem in held_out_problems(task, count, seed))
    found = _read_file(Path(source))
    available = Counter(problem.task for problem in found)
    for task in tasks:
        if available[task] < count:
            raise ConfigError(
                f"PopulationEvaluation(problems={source!r}): expected {count} problems of task {task}, "
                f"the file has {available[task]}; lower count or add problems"
            )
    return tuple(problem for task in tasks for problem in [p for p in found if p.task == task][:count])


def _read_file(path: Path) -> list[Problem]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"PopulationEvaluation(problems={str(path)!r}): expected 'embedded' or a JSONL file, "
            f"cannot read it: {error}"
        ) from error
    return [_read_line(line, f"{path}, line {i}") for i, line in enumerate(lines, start=1) if line.strip()]


def _read_line(line: str, place: str) -> Problem:
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise ConfigError(f"{place}: not JSON: {error}") from error
    if not isinstance(fields, dict) or not _REQUIRED <= fields.keys() <= _FIELDS:
        raise ConfigError(
            f"{place}: expected an object with {', '.join(sorted(_REQUIRED))} and optionally "
            f"{', '.join(sorted(_FIELDS - _REQUIRED))}, got {sorted(fields) if isinstance(fields, dict) else fields!r}"
        )
    if not all(
        isinstance(fields[name], list) and all(isinstance(x, str) for x in fields[name]) for name in _LISTS
    ):
        raise ConfigError(f"{place}: inputs and outputs must be lists of strings")
    return read_problem(fields)


def read_problem(fields: Mapping[str, Any]) -> Problem:
    """Return the problem that ``dataclasses.asdict`` took apart."""
    return Problem(**{**fields, "inputs": tuple(fields["inputs"]), "outputs": tuple(fields["outputs"])})
