"""LiveCodeBench, code generation (Jain et al. 2024, arXiv 2403.07974), release_v5: May 2023 to January 2025."""

import base64
import json
import pickle
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import NoReturn

from typing_extensions import override

from populora.evaluation.code.calls import Times, call_job, encoded, results
from populora.evaluation.code.extraction import extract
from populora.evaluation.code.sandbox import CodeSandbox
from populora.evaluation.code.scripts import PRELUDE, outputs, same_output, script_job
from populora.evaluation.code.values import read
from populora.evaluation.data import DataSet, DataSource, Row
from populora.evaluation.suite import Decoding, Form, Grade, Item, Suite, suites
from populora.verifier.sandbox import Job, Run

_SECONDS = 30.0
"""CPU time of one test; the benchmark allows 6 seconds on a machine that does nothing else."""
_WALL_SECONDS, _WALL_FACTOR = 60.0, 4.0
"""Wall-clock backstop: as much, and so many times the CPU time."""
_LENGTH, _LENGTH_FACTOR = 10_000, 4
"""Characters of an output: at least so many, and so many times the longest expected one."""
_INSTRUCTION = (
    "You will be given a question (problem specification) and will generate a correct Python program that matches "
    "the specification and passes all tests."
)
_WITH_STARTER = (
    "You will use the following starter code to write the solution to the problem and enclose your code within "
    "delimiters."
)
_WITH_STDIN = (
    "Read the inputs from stdin solve the problem and write the answer to stdout (do not directly test on the sample "
    "inputs). Enclose your code within delimiters as follows. Ensure that when the python program runs, it reads the "
    "inputs, runs the algorithm and writes output to STDOUT."
)


@dataclass(frozen=True)
class Test:
    """What goes in, and what has to come out."""

    input: str
    """Standard input, or one JSON argument a line."""
    output: str
    """Standard output, or the result in JSON."""


@dataclass(frozen=True)
class LiveCodeItem(Item):
    """A problem of a programming contest."""

    starter: str
    """Beginning of a class ``Solution``; empty where the program is a script."""
    function: str
    """The method of ``Solution`` that is tested; empty where the program is a script."""
    public: tuple[Test, ...]
    hidden: str | None
    """The other tests as the hub packs them; None where there are none."""

    @property
    def tests(self) -> tuple[Test, ...]:
        """All tests there are."""
        return self.public + (_unpacked(self.hidden) if self.hidden else ())


@suites.register("livecodebench")
class LiveCodeBench(Suite[LiveCodeItem]):
    """Contest problems, solved by scripts or methods; the local file has public tests only, the hub all."""

    name = "livecodebench"
    title = "LiveCodeBench v5"
    group = "code"
    decoding = Decoding(max_tokens=8096)
    data = DataSet(
        suite=name,
        file="livecodebench_v5_public.jsonl.gz",
        sha256="6f444d5a05740f68f23cfda7970acda316dcc0898cc23fd2459047c5e442242f",
        hub="livecodebench/code_generation_lite",
        revision="0fe84c3912ea0c4d4a78037083943e8f0c4dd505",
        hub_files=("test.jsonl", "test2.jsonl", "test3.jsonl", "test4.jsonl", "test5.jsonl"),
    )

    def __init__(self, source: DataSource = DataSource()) -> None:
        super().__init__(source)
        self._sandbox = CodeSandbox()

    @property
    @override
    def caveat(self) -> str:
        return "public tests only" if any(item.hidden is None for item in self.items()) else ""

    @override
    def read(self, row: Row, number: int) -> LiveCodeItem:
        return LiveCodeItem(
            id=str(row["question_id"]),
            question=row["question_content"],
            starter=row["starter_code"],
            function=json.loads(row["metadata"]).get("func_name", "") if row["starter_code"] else "",
            public=_tests(row["public_test_cases"]),
            hidden=row.get("private_test_cases"),
        )

    @override
    def form(self, item: LiveCodeItem, chat: bool) -> Form:
        instruction, code = (
            (_WITH_STARTER, item.starter) if item.starter else (_WITH_STDIN, "# YOUR CODE HERE")
        )
        text = (
            f"{_INSTRUCTION}\n\n### Question:\n{item.question}\n\n### Format: {instruction}\n```python\n{code}\n```\n\n"
            "### Answer: (use the provided format with backticks)\n\n"
        )
        return Form(text) if chat else Form(text, "```python\n", ("\n```",))

    @override
    def grade(self, answers: Sequence[tuple[LiveCodeItem, str]]) -> list[Grade]:
        extractions = [extract(response, "Solution" if item.function else None) for item, response in answers]
        pairs = {
            (item.id, each.program): item
            for (item, _), each in zip(answers, extractions, strict=True)
            if each.program
        }
        runs = self._sandbox.run([_job(item, program) for (_, program), item in pairs.items()])
        failures = {pair: _failure(item, run) for (pair, item), run in zip(pairs.items(), runs, strict=True)}
        return [
            _grade(each.program, failures[item.id, each.program])
            if each.program
            else Grade(False, "", each.reason)
            for (item, _), each in zip(answers, extractions, strict=True)
        ]

    @override
    def close(self) -> None:
        self._sandbox.close()


def _grade(program: str, failure: str) -> Grade:
    return Grade(not failure, program, failure)


def _job(item: LiveCodeItem, program: str) -> Job:
    tests = item.tests
    seconds = _SECONDS * len(tests)
    times = Times(_SECONDS, seconds, _WALL_SECONDS + _WALL_FACTOR * seconds)
    if not item.function:
        longest = max(len(test.output) for test in tests)
        return script_job(
            program, tuple(test.input for test in tests), times, _LENGTH + _LENGTH_FACTOR * longest
        )
    entry = f"Solution().{item.function}" if "class Solution" in program else item.function
    inputs = tuple(encoded([json.loads(line) for line in test.input.split("\n")]) for test in tests)
    return call_job(program, entry, inputs, times, PRELUDE)


def _failure(item: LiveCodeItem, run: Run) -> str:
    """Return why a program fails, empty where it passes."""
    found = results(run) if item.function else outputs(run)
    same = _same_result if item.function else same_output
    for index, (test, text) in enumerate(zip(item.tests, found.texts, strict=False)):
        if not same(test.output, text):
            return f"wrong at test {index}"
    return f"{found.failure.category} at test {len(found.texts)}" if found.failure else ""


def _same_result(expected: str, text: str) -> bool:
    """Whether a result equals the expected one; as JSON has no tuples, one stands for a list."""
    result = read(text[1:])
    return bool((list(result) if isinstance(result, tuple) else result) == json.loads(expected))


def _tests(text: str) -> tuple[Test, ...]:
    return tuple(Test(each["input"], each["output"]) for each in json.loads(text))


def _unpacked(text: str) -> tuple[Test, ...]:
    """Read tests as the hub has them: JSON, or pickled, compressed JSON of which only the text is taken."""
    try:
        return _tests(text)
    except ValueError:
        packed = zlib.decompress(base64.b64decode(text))
        return _tests(_TextOnly(BytesIO(packed)).load())


class _TextOnly(pickle.Unpickler):
    """Reads a pickled string, and nothing that would run code."""

    @override
    def find_class(self, module: str, name: str, /) -> NoReturn:
        raise pickle.UnpicklingError(f"tests are text, not {module}.{name}")
