"""HumanEval+ (EvalPlus' tests, Liu et al. 2023, arXiv 2305.01210, for HumanEval, Chen et al. 2021, arXiv 2107.03374)."""

from typing_extensions import override

from populora.evaluation.code.comparison import Rule, is_root
from populora.evaluation.code.plus import PlusItem, PlusSuite, tests_of
from populora.evaluation.data import DataSet, Row
from populora.evaluation.suite import suites


@suites.register("humaneval_plus")
class HumanEvalPlus(PlusSuite):
    """Functions to complete from signature and docstring; the hub has all tests in one."""

    name = "humaneval_plus"
    title = "HumanEval+"
    stop = ("\ndef ", "\nclass ", "\nimport ", "\nfrom ", "\nassert ")
    data = DataSet(
        suite=name,
        file="humaneval_plus.jsonl.gz",
        sha256="272720b90ac375502c8ed23cd791c2a93dfb22a911641a494da74a426c09f101",
        hub="evalplus/humanevalplus",
        revision="d32357cf319e50e9c8d8dab5ea876c72b0fd321b",
        hub_files=("data/test-00000-of-00001-5973903632b82d40.parquet",),
    )

    @override
    def read(self, row: Row, number: int) -> PlusItem:
        tests = None if "base_input" in row else tests_of(row["test"])
        tolerance = row["atol"] if tests is None else tests.tolerance
        root = row["entry_point"] == "find_zero"
        return PlusItem(
            id=row["task_id"],
            question=row["prompt"],
            function=row["entry_point"],
            canonical=row["prompt"] + row["canonical_solution"],
            base=tuple(row["base_input"]) if tests is None else (),
            plus=tuple(row["plus_input"]) if tests is None else tests.inputs,
            rule=Rule(tolerance, oracle=is_root, only_oracle=True) if root else Rule(tolerance),
        )
