"""CRUXEval (Gu et al. 2024, arXiv 2401.03065): outputs and inputs of 800 short functions, to be predicted.

These are deduction and abduction as in training, on functions from elsewhere: members are asked in the words of
training, and their answers are judged by the same verifier.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import jinja2
from typing_extensions import override

from populora.config import VerifierConfig
from populora.evaluation.code.literals import find_arguments, find_output
from populora.evaluation.data import DataSet, DataSource, Row
from populora.evaluation.suite import Decoding, Form, Grade, Item, Suite, suites
from populora.records import Problem
from populora.tasks.literals import canonical, canonical_arguments
from populora.verifier import Verifier


@dataclass(frozen=True)
class CruxItem(Item):
    """A function with one of its calls."""

    problem: Problem


class _CRUXEval(Suite[CruxItem]):
    group = "execution"
    decoding = Decoding(max_tokens=1024)
    task: str
    """Of training, whose words and rules apply."""
    find: ClassVar[Callable[[str], str | None]]
    """Reads an answer."""

    def __init__(self, source: DataSource = DataSource()) -> None:
        super().__init__(source)
        self._verifier = Verifier(VerifierConfig())

    @override
    def read(self, row: Row, number: int) -> CruxItem:
        output = canonical(row["output"])
        if output is None:
            raise ValueError(f"the output of {row['id']} is no literal")
        arguments = canonical_arguments(row["input"]) or row["input"]  # a few call functions themselves
        return CruxItem(row["id"], row["code"], Problem(self.task, row["code"], (arguments,), (output,)))

    @override
    def form(self, item: CruxItem, chat: bool) -> Form:
        problem = item.problem
        template = _templates("chat" if chat else "base").get_template(f"solve_{self.task}.j2")
        text = template.render(program=problem.program, input=problem.inputs[0], output=problem.outputs[0])
        return Form(text, stop=() if chat else ("</answer>",))

    @override
    def grade(self, answers: Sequence[tuple[CruxItem, str]]) -> list[Grade]:
        found = [type(self).find(response) for _, response in answers]
        verdicts = self._verifier.grade(
            [(item.problem, answer) for (item, _), answer in zip(answers, found, strict=True)]
        )
        return [
            Grade(verdict.correct, answer or "", verdict.failure or "")
            for answer, verdict in zip(found, verdicts, strict=True)
        ]

    @override
    def close(self) -> None:
        self._verifier.close()


def _data(suite: str) -> DataSet:
    return DataSet(
        suite=suite,
        file="cruxeval.jsonl",
        sha256="8368b81047dc5014e4caf5a2f97604eff7644e0ecd7415e3ceeb184bbc2e0c96",
        hub="cruxeval-org/cruxeval",
        revision="b96af0450242eb4da433032b90998f25588a5d0f",
        hub_files=("test.jsonl",),
    )


@suites.register("cruxeval_o")
class CRUXEvalO(_CRUXEval):
    """Deduction: the output of a call."""

    name = "cruxeval_o"
    title = "CRUXEval-O"
    data = _data(name)
    task = "deduction"
    find = find_output


@suites.register("cruxeval_i")
class CRUXEvalI(_CRUXEval):
    """Abduction: an input that gives the output."""

    name = "cruxeval_i"
    title = "CRUXEval-I"
    data = _data(name)
    task = "abduction"
    find = find_arguments


@cache
def _templates(name: str) -> jinja2.Environment:
    """Return a set of the training tasks' templates."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("populora.tasks", f"templates/{name}"),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
