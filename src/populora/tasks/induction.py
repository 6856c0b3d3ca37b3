"""Induction: given input/output pairs and a message, find the program."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from populora.config import RolloutConfig
from populora.records import Draft, Problem
from populora.tasks.base import Task, Trial, hidden, visible
from populora.tasks.buffer import ProblemBuffer
from populora.tasks.literals import canonical_arguments
from populora.tasks.parsing import answer_blocks, last_block
from populora.tasks.prompts import Prompts


@dataclass(frozen=True)
class Induction(Task):
    """The answer is a program, right when it gives the output of every hidden pair.

    The teacher does not write the program: it is shown one of the buffer's and writes inputs and a message.
    """

    inputs: int = 10
    """Distinct inputs a problem needs: the first so many count, a proposal with fewer is malformed."""

    name = "induction"

    def configure(self, config: RolloutConfig) -> "Induction":
        return Induction(config.induction_inputs)

    def references(self, buffer: ProblemBuffer, count: int, rng: random.Random) -> list[Problem]:
        """Draw one problem of any task, for its program."""
        return buffer.sample_programs(1, rng)

    def propose(self, prompts: Prompts, references: Sequence[Problem]) -> str:
        return prompts.render(
            "propose_induction", program=_reference(references).program, n_inputs=self.inputs
        )

    def read_proposal(self, text: str, references: Sequence[Problem]) -> Draft | None:
        read = (canonical_arguments(block) for block in answer_blocks(text, "input"))
        distinct = tuple(dict.fromkeys(arguments for arguments in read if arguments is not None))
        message = last_block(text, "message")
        if message is None or len(distinct) < self.inputs:
            return None
        return Draft(self.name, _reference(references).program, distinct[: self.inputs], message)

    def solve(self, prompts: Prompts, problem: Problem) -> str:
        return prompts.render("solve_induction", examples=visible(problem), message=problem.message)

    def read_answer(self, text: str) -> str | None:
        return last_block(text, "python")

    def trial(self, problem: Problem, answer: str) -> Trial | bool:
        inputs, outputs = zip(*hidden(problem), strict=True)
        return Trial(answer, inputs, outputs)


def _reference(references: Sequence[Problem]) -> Problem:
    if not references:
        raise ValueError("an induction proposal needs a reference program, got none; seed the buffer first")
    return references[0]
