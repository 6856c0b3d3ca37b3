"""Graders against the published data and known verdicts, where a folder with them is there."""

import gzip
import json
import os
from collections import Counter
from pathlib import Path

import pytest

from populora.config import VerifierConfig
from populora.evaluation.code.calls import Times, call_job, encoded, results
from populora.evaluation.code.sandbox import CodeSandbox
from populora.evaluation.code.values import read
from populora.evaluation.suites.cruxeval import CRUXEvalO
from populora.evaluation.suites.humaneval_plus import HumanEvalPlus
from populora.evaluation.suites.livecodebench import LiveCodeBench
from populora.evaluation.suites.mbpp_plus import MBPPPlus
from populora.records import Draft
from populora.verifier import Verifier

FOLDER = Path(os.environ.get("POPULORA_BENCHMARKS", "/nowhere"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="POPULORA_BENCHMARKS names no folder"),
]
NOT_LITERAL = {
    "sample_135": "no argument",
    "sample_152": "call",
    "sample_239": "sum",
    "sample_258": "name",
    "sample_344": "lambda",
    "sample_364": "lambda",
    "sample_378": "call",
    "sample_459": "call",
    "sample_522": "call",
    "sample_694": "call",
    "sample_720": "call",
    "sample_760": "call",
    "sample_770": "call",
}
"""Inputs that the verifier refuses, since an input has to be a list of literals."""


def rows(name: str) -> list[dict]:
    with (gzip.open if name.endswith(".gz") else open)(FOLDER / name, "rt") as file:
        return [json.loads(line) for line in file]


@pytest.mark.parametrize(("kind", "count"), [(HumanEvalPlus, 164), (MBPPPlus, 378)])
def test_canonical_solutions_pass_twice(kind, count):
    with kind() as suite:
        programs = [(item, item.canonical) for item in suite.items()]
        for _ in range(2):
            verdicts = suite.verdicts(programs)
            failed = [
                (item.id, v) for (item, _), v in zip(programs, verdicts, strict=True) if v.base or v.plus
            ]
            assert failed == []
    assert len(programs) == count


def test_a_models_solutions_of_mbpp_get_the_known_verdicts():
    known = {row["task_id"]: row for row in rows("mbpp_plus_solutions.jsonl")}
    with MBPPPlus() as suite:
        items = suite.items()
        programs = [(item, known[item.id]["solution"]) for item in items]
        verdicts, grades = suite.verdicts(programs), suite.grade(programs)
    different = [
        (item.id, verdict)
        for item, verdict in zip(items, verdicts, strict=True)
        if (not verdict.base, not verdict.plus)
        != tuple(known[item.id][f"{part}_rechecked"] == "pass" for part in ("base", "plus"))
    ]
    assert different == []
    assert [grade.correct for grade in grades] == [not (v.base or v.plus) for v in verdicts]
    assert len(items) == 378


def test_a_models_solutions_of_livecodebench_get_the_known_verdicts():
    known = {row["question_id"]: row for row in rows("livecodebench_v5_solutions.jsonl.gz")}
    with LiveCodeBench() as suite:
        items = suite.items()
        grades = suite.grade([(item, known[item.id]["code"]) for item in items])
        assert suite.caveat == "public tests only"
    different = [
        (item.id, grade.reason)
        for item, grade in zip(items, grades, strict=True)
        if grade.correct != known[item.id]["passed_public"]
    ]
    assert different == []
    assert Counter(grade.correct for grade in grades) == {True: 690, False: 190}


def test_cruxeval_programs_are_valid_and_give_the_stated_output():
    with CRUXEvalO() as suite, Verifier(VerifierConfig()) as verifier:
        items = suite.items()
        drafts = [Draft("deduction", item.problem.program, item.problem.inputs) for item in items]
        validations = verifier.validate(drafts)
    refused = {item.id: v.failure for item, v in zip(items, validations, strict=True) if v.problem is None}
    assert refused == dict.fromkeys(NOT_LITERAL, "not a literal: input")
    different = [
        item.id
        for item, v in zip(items, validations, strict=True)
        if v.problem and v.problem.outputs != item.problem.outputs
    ]
    assert different == []
    assert len(items) == 800


def test_cruxeval_programs_whose_input_is_no_literal_give_the_stated_output_too():
    chosen = [row for row in rows("cruxeval.jsonl") if row["id"] in NOT_LITERAL]
    sandbox = CodeSandbox()
    jobs = [call_job(r["code"], f"lambda: f({r['input']})", (encoded([]),), Times(2, 4, 60)) for r in chosen]
    found = [results(run) for run in sandbox.run(jobs)]
    sandbox.close()
    outputs = [read(each.texts[0][1:]) if each.texts else each.failure for each in found]
    assert outputs == [read(row["output"]) for row in chosen]
