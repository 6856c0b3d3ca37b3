"""Abduction: given a program and an output, find an input that gives it."""

from collections.abc import Sequence

from populora.records import Draft, Problem
from populora.tasks.base import Task, Trial
from populora.tasks.literals import canonical_arguments
from populora.tasks.parsing import last_block, one_input_draft
from populora.tasks.prompts import Prompts


class Abduction(Task):
    """The answer is an argument list; any that gives the output is right."""

    name = "abduction"

    def propose(self, prompts: Prompts, references: Sequence[Problem]) -> str:
        return prompts.render("propose_abduction", references=references)

    def read_proposal(self, text: str, references: Sequence[Problem]) -> Draft | None:
        return one_input_draft(self.name, text)

    def solve(self, prompts: Prompts, problem: Problem) -> str:
        return prompts.render("solve_abduction", program=problem.program, output=problem.outputs[0])

    def read_answer(self, text: str) -> str | None:
        return canonical_arguments(last_block(text, "input") or "")

    def trial(self, problem: Problem, answer: str) -> Trial | bool:
        return Trial(problem.program, (answer,), problem.outputs)
