"""Problems in the embedded base's language: for evaluation, and to begin a run with."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from populora.embedded.programs import MAX_STEPS, Sample, input_text, sample
from populora.records import Problem

INDUCTION_INPUTS = 10
TASKS = ("deduction", "abduction", "induction")
_REDRAWS = 8


@dataclass(frozen=True)
class MeasuredProblem(Problem):
    """A problem whose length is known."""

    statements: int = 0
    """Statements of the program, 1 to 8; a closing return of a bare variable is not counted."""


def held_out_problems(task: str, count: int, seed: int = 0) -> tuple[MeasuredProblem, ...]:
    """Return ``count`` problems, the same for the same arguments, spread evenly over 1 to 8 statements.

    Programs do not repeat, except that a large ``count`` exhausts the shortest ones.

    Args:
        task: ``deduction``, ``abduction`` (one input each) or ``induction`` (ten inputs and a message).
        count: Number of problems.
        seed: Seed of the draw.
    """
    rng = random.Random(f"held out {task} {seed}")
    return _draw(rng, task, [i % MAX_STEPS + 1 for i in range(count)], held_out=True)


def starting_problems(count: int = 12) -> tuple[Problem, ...]:
    """Return ``count`` problems of each task for an empty buffer, of 1 to 4 statements.

    Their programs are on the side of the split that the base was trained on.
    """
    rng = random.Random("starting")
    return tuple(
        Problem(p.task, p.program, p.inputs, p.outputs, p.message)
        for task in TASKS
        for p in _draw(rng, task, [i % 4 + 1 for i in range(count)], held_out=False)
    )


def _draw(
    rng: random.Random, task: str, statements: Sequence[int], held_out: bool
) -> tuple[MeasuredProblem, ...]:
    inputs = INDUCTION_INPUTS if task == "induction" else 1
    seen: set[str] = set()
    return tuple(_problem(task, _unseen(rng, length, inputs, seen, held_out)) for length in statements)


def _unseen(rng: random.Random, statements: int, inputs: int, seen: set[str], held_out: bool) -> Sample:
    for _ in range(_REDRAWS):
        item = sample(rng, statements, inputs, held_out)
        if item.program.source not in seen:
            break
    seen.add(item.program.source)
    return item


def _problem(task: str, item: Sample) -> MeasuredProblem:
    return MeasuredProblem(
        task=task,
        program=item.program.source,
        inputs=tuple(map(input_text, item.inputs)),
        outputs=tuple(repr(trace.result) for trace in item.traces),
        message=item.program.message if task == "induction" else None,
        statements=item.program.steps,
    )
