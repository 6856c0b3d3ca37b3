"""What HumanEval+ and MBPP+ have in common (EvalPlus, Liu et al. 2023, arXiv 2305.01210): how programs are tested."""

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from typing_extensions import override

from populora.evaluation.code.calls import Results, Times, call_job, encoded, results
from populora.evaluation.code.comparison import Rule, first_wrong
from populora.evaluation.code.expected import Expected, Reference, expected
from populora.evaluation.code.extraction import extract
from populora.evaluation.code.sandbox import CodeSandbox
from populora.evaluation.code.values import value_of
from populora.evaluation.data import DataSource
from populora.evaluation.suite import Decoding, Form, Grade, Item, Suite
from populora.verifier.sandbox import Job

Part = Literal["base", "plus"]

_STOP = ("<|endoftext|>", "<|endofmask|>", "</s>", "\nif __name__", "\ndef main(", "\nprint(")
_INSTRUCTION = "Please provide a self-contained Python script that solves the following problem in a markdown code block:"
_PREFILL = (
    "Below is a Python script with a self-contained function that solves the problem and passes corresponding tests:\n"
    "```python\n"
)
CALL_SECONDS, _FACTOR = 10.0, 4.0
"""CPU time of one call: at least so much, and so many times what the canonical solution's slowest takes."""
_SECONDS = 150.0
"""CPU time of all calls together, beyond what the canonical solution's take."""
_WALL_SECONDS, _WALL_FACTOR = 600.0, 30.0
"""Wall-clock backstop: as much, and so many times the canonical solution's CPU time."""


@dataclass(frozen=True, eq=False)
class PlusItem(Item):
    """A function to write, and inputs to test it with."""

    function: str
    canonical: str
    """A program that is right."""
    base: tuple[Sequence[Any], ...]
    """Arguments of each call of the original benchmark's tests."""
    plus: tuple[Sequence[Any], ...]
    """Arguments of each call of EvalPlus' further tests."""
    rule: Rule

    def inputs(self, part: Part) -> tuple[Sequence[Any], ...]:
        """Return the arguments of each call of a part of the tests."""
        return self.base if part == "base" else self.plus

    @cached_property
    def references(self) -> dict[Part, Reference]:
        """The canonical solution with each part's inputs."""
        entry = self.rule.entry(self.function)
        parts: tuple[Part, ...] = ("base", "plus")
        return {
            part: Reference(self.id, self.canonical, entry, tuple(map(encoded, self.inputs(part))))
            for part in parts
        }


@dataclass(frozen=True)
class PlusVerdict:
    """Whether a program passes; a task counts as solved when it passes both."""

    base: str = ""
    """Why it fails the original tests; empty when it passes them."""
    plus: str = ""
    """Why it fails the further tests; empty when it passes them."""


class PlusSuite(Suite[PlusItem]):
    """Functions to write, tested as EvalPlus does."""

    group = "code"
    decoding = Decoding(max_tokens=768)
    stop: tuple[str, ...]
    """What ends a continuation, beside what ends one of any task."""

    def __init__(self, source: DataSource = DataSource()) -> None:
        super().__init__(source)
        self._sandbox = CodeSandbox()

    @override
    def form(self, item: PlusItem, chat: bool) -> Form:
        if chat:
            return Form(f"{_INSTRUCTION}\n```\n{item.question.strip()}\n```\n", _PREFILL, ("\n```",))
        return Form("", f"{item.question.strip()}\n", (*_STOP, *self.stop))

    @override
    def grade(self, answers: Sequence[tuple[PlusItem, str]]) -> list[Grade]:
        stop = (*_STOP, *self.stop)
        extractions = [extract(response, item.function, stop) for item, response in answers]
        pairs = [
            (item, each.program) for (item, _), each in zip(answers, extractions, strict=True) if each.program
        ]
        base = self._failures(pairs, "base")
        passed = [pair for pair in pairs if not base[_key(pair)]]
        plus = self._failures(passed, "plus")
        return [
            Grade(False, "", each.reason)
            if not each.program
            else _grade(each.program, (item, each.program), base, plus)
            for (item, _), each in zip(answers, extractions, strict=True)
        ]

    def verdicts(self, programs: Sequence[tuple[PlusItem, str]]) -> list[PlusVerdict]:
        """Return how programs do, in order, in both parts of their tests.

        Raises:
            DataError: a canonical solution fails.
            VerifierError: the sandbox cannot be started.
        """
        base, plus = self._failures(programs, "base"), self._failures(programs, "plus")
        return [PlusVerdict(base[_key(pair)], plus[_key(pair)]) for pair in programs]

    @override
    def close(self) -> None:
        self._sandbox.close()

    def _failures(self, pairs: Iterable[tuple[PlusItem, str]], part: Part) -> dict[tuple[str, str], str]:
        """Return why each program fails a part of its tests, empty where it does not; equal ones run once."""
        distinct = {_key(pair): pair for pair in pairs}
        references = [item.references[part] for item, _ in distinct.values()]
        rights = expected(references, self._sandbox)
        jobs = [
            _job(reference, program, right)
            for reference, (_, program), right in zip(references, distinct.values(), rights, strict=True)
        ]
        runs = self._sandbox.run(jobs)
        return {
            key: _failure(item.rule, item.inputs(part), right, results(run))
            for (key, (item, _)), right, run in zip(distinct.items(), rights, runs, strict=True)
        }


def _key(pair: tuple[PlusItem, str]) -> tuple[str, str]:
    return pair[0].id, pair[1]


def _grade(
    program: str,
    pair: tuple[PlusItem, str],
    base: dict[tuple[str, str], str],
    plus: dict[tuple[str, str], str],
) -> Grade:
    for name, failures in (("base", base), ("plus", plus)):
        if reason := failures[_key(pair)]:
            return Grade(False, program, f"{name}: {reason}")
    return Grade(True, program)


def _job(reference: Reference, program: str, right: Expected) -> Job:
    slowest, total = max(right.seconds, default=0.0), sum(right.seconds)
    times = Times(
        one_call=max(CALL_SECONDS, _FACTOR * slowest),
        all_calls=_SECONDS + _FACTOR * total,
        wall=_WALL_SECONDS + _WALL_FACTOR * total,
    )
    return call_job(program, reference.entry, reference.inputs, times)


def _failure(rule: Rule, inputs: Sequence[Sequence[Any]], right: Expected, found: Results) -> str:
    wrong = first_wrong(rule, inputs, right.texts, found.texts)
    if wrong is not None:
        return f"wrong at input {wrong}"
    return f"{found.failure.category} at input {len(found.texts)}" if found.failure else ""


@dataclass(frozen=True)
class Tests:
    """What a test program of the hub's data sets says; it is read, not run."""

    function: str
    inputs: tuple[Sequence[Any], ...]
    tolerance: float


def tests_of(program: str) -> Tests:
    """Read a test program: ``inputs = …``, and ``assertion(FUNCTION(*inp), …, TOLERANCE)`` at its end.

    Raises:
        ValueError: it is none.
    """
    nodes = list(ast.walk(ast.parse(program)))
    inputs = [n.value for n in nodes if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "inputs"]
    loops = [n for n in nodes if isinstance(n, ast.For) and "inputs" in ast.unparse(n.iter)]
    if len(inputs) != 1 or len(loops) != 1:
        raise ValueError("a test program has one list of inputs and one loop over it")
    inside = list(ast.walk(loops[0]))
    called = [ast.unparse(n.func) for n in inside if isinstance(n, ast.Call) and _has_star(n)]
    numbers = [n.value for n in inside if isinstance(n, ast.Constant) and isinstance(n.value, int | float)]
    return Tests(called[0], tuple(value_of(inputs[0])), float(numbers[-1]))


def _has_star(call: ast.Call) -> bool:
    return any(isinstance(argument, ast.Starred) for argument in call.args)
