"""The problems all teachers have written: references for new ones, and work when a match has too few."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from populora.errors import CheckpointError
from populora.records import Problem


class ProblemBuffer:
    """Keeps the newest problems of each task, without duplicates.

    Args:
        capacity: Most problems per task; beyond it the oldest leave.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"a problem buffer needs room for at least 1 problem per task, got {capacity}")
        self._capacity = capacity
        self._problems: dict[str, dict[str, Problem]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._problems.values()))

    def add(self, problems: Iterable[Problem]) -> None:
        """File problems in order; one that is already kept is ignored and does not get younger."""
        for problem in problems:
            kept = self._problems.setdefault(problem.task, {})
            kept.setdefault(problem.key, problem)
            if len(kept) > self._capacity:
                del kept[next(iter(kept))]

    def sample(self, task: str, count: int, rng: random.Random) -> list[Problem]:
        """Draw up to ``count`` distinct problems of one task uniformly; fewer when the buffer has fewer."""
        return _draw(self._problems.get(task, {}).values(), count, rng)

    def sample_programs(self, count: int, rng: random.Random) -> list[Problem]:
        """Draw up to ``count`` problems of any task with distinct programs, uniformly over the programs."""
        programs = {problem.program: problem for kept in self._problems.values() for problem in kept.values()}
        return _draw(programs.values(), count, rng)

    def state_dict(self) -> dict[str, Any]:
        """Everything kept, oldest first, as plain types that JSON can hold."""
        return {task: [asdict(problem) for problem in kept.values()] for task, kept in self._problems.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace what is kept; a smaller capacity drops the oldest.

        Raises:
            CheckpointError: ``state`` does not hold problems.
        """
        try:
            loaded = [_problem(fields) for problems in state.values() for fields in problems]
        except (TypeError, KeyError, AttributeError) as error:
            raise CheckpointError(
                f"the checkpoint's problem buffer is not readable ({error}); expected what state_dict() wrote: "
                "lists of problems by task"
            ) from error
        self._problems = {}
        self.add(loaded)


def _draw(problems: Iterable[Problem], count: int, rng: random.Random) -> list[Problem]:
    pool = list(problems)
    return rng.sample(pool, min(count, len(pool)))


def _problem(fields: Mapping[str, Any]) -> Problem:
    pairs = {name: tuple(fields[name]) for name in ("inputs", "outputs")}
    return Problem(**{**fields, **pairs})
