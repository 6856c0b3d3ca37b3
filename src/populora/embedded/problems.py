"""Fixed evaluation problems, from programs that training never shows."""

import random
from dataclasses import dataclass

from populora.embedded.programs import MAX_STEPS, Sample, input_text, sample
from populora.records import Problem

INDUCTION_INPUTS = 10
_REDRAWS = 8


@dataclass(frozen=True)
class HeldOutProblem(Problem):
    """A problem of the held-out split."""

    statements: int = 0
    """Statements of the program, 1 to 8; a closing return of a bare variable is not counted."""


def held_out_problems(task: str, count: int, seed: int = 0) -> tuple[HeldOutProblem, ...]:
    """Return ``count`` problems, the same for the same arguments, spread evenly over 1 to 8 statements.

    Programs do not repeat, except that a large ``count`` exhausts the shortest ones.

    Args:
        task: ``deduction``, ``abduction`` (one input each) or ``induction`` (ten inputs and a message).
        count: Number of problems.
        seed: Seed of the draw.
    """
    rng = random.Random(f"held out {task} {seed}")
    inputs = INDUCTION_INPUTS if task == "induction" else 1
    seen: set[str] = set()
    return tuple(_problem(task, _unseen(rng, i % MAX_STEPS + 1, inputs, seen)) for i in range(count))


def _unseen(rng: random.Random, statements: int, inputs: int, seen: set[str]) -> Sample:
    for _ in range(_REDRAWS):
        item = sample(rng, statements, inputs, held_out=True)
        if item.program.source not in seen:
            break
    seen.add(item.program.source)
    return item


def _problem(task: str, item: Sample) -> HeldOutProblem:
    return HeldOutProblem(
        task=task,
        program=item.program.source,
        inputs=tuple(map(input_text, item.inputs)),
        outputs=tuple(repr(trace.result) for trace in item.traces),
        message=item.program.message if task == "induction" else None,
        statements=item.program.steps,
    )
