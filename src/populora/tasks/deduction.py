"""Deduction: given a program and an input, find the output."""

from collections.abc import Sequence

from populora.records import Draft, Problem
from populora.tasks.base import Task, Trial
from populora.tasks.literals import canonical
from populora.tasks.parsing import last_block, one_input_draft
from populora.tasks.prompts import Prompts


class Deduction(Task):
    """The answer is a literal, right when it is the program's output."""

    name = "deduction"

    def propose(self, prompts: Prompts, references: Sequence[Problem]) -> str:
        return prompts.render("propose_deduction", references=references)

    def read_proposal(self, text: str, references: Sequence[Problem]) -> Draft | None:
        return one_input_draft(self.name, text)

    def solve(self, prompts: Prompts, problem: Problem) -> str:
        return prompts.render("solve_deduction", program=problem.program, input=problem.inputs[0])

    def read_answer(self, text: str) -> str | None:
        return canonical(last_block(text, "output") or "")

    def trial(self, problem: Problem, answer: str) -> Trial | bool:
        return answer == problem.outputs[0]
