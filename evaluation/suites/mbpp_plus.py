"""MBPP+ (EvalPlus' tests, Liu et al. 2023, arXiv 2305.01210, for MBPP, Austin et al. 2021, arXiv 2108.07732)."""

from typing_extensions import override

from populora.evaluation.code.comparison import Rule, anything, digit_distance, pyramid_surface, zero
from populora.evaluation.code.mbpp_inputs import restored
from populora.evaluation.code.plus import PlusItem, PlusSuite, tests_of
from populora.evaluation.data import DataSet, Row
from populora.evaluation.suite import suites

_AS_SETS = frozenset({2, 7, 111, 140, 232, 249, 579, 769})
_NOT_NONE = frozenset({"check_str", "text_match_three", "text_starta_endb"})
_ORACLES = {164: anything, 295: zero, 558: digit_distance, 581: pyramid_surface}


@suites.register("mbpp_plus")
class MBPPPlus(PlusSuite):
    """Functions to write from a sentence and one assertion; the hub has all tests in one."""

    name = "mbpp_plus"
    title = "MBPP+"
    stop = ('\n"""', "\nassert")
    data = DataSet(
        suite=name,
        file="mbpp_plus.jsonl.gz",
        sha256="af43697e8791c4c149bdfd6b489d8b5412507551ac20e28a439f650b8225db63",
        hub="evalplus/mbppplus",
        revision="b2d74c91837c3f2a20c1299ae98133cbe7cfa077",
        hub_files=("data/test-00000-of-00001-d5781c9c51e02795.parquet",),
    )

    @override
    def read(self, row: Row, number: int) -> PlusItem:
        return _local_item(row) if "base_input" in row else _hub_item(row)


def _local_item(row: Row) -> PlusItem:
    number = int(row["task_id"].removeprefix("Mbpp/"))
    return PlusItem(
        id=row["task_id"],
        question=row["prompt"],
        function=row["entry_point"],
        canonical=row["canonical_solution"],
        base=tuple(restored(number, arguments) for arguments in row["base_input"]),
        plus=tuple(restored(number, arguments) for arguments in row["plus_input"]),
        rule=_rule(number, row["entry_point"], row["atol"]),
    )


def _hub_item(row: Row) -> PlusItem:
    tests = tests_of(row["test"])
    return PlusItem(
        id=f"Mbpp/{row['task_id']}",
        question=f'"""\n{row["prompt"]}\n{row["test_list"][0]}\n"""\n',
        function=tests.function,
        canonical=row["code"],
        base=(),
        plus=tests.inputs,
        rule=_rule(int(row["task_id"]), tests.function, tests.tolerance),
    )


def _rule(number: int, function: str, tolerance: float) -> Rule:
    return Rule(
        tolerance,
        as_sets=number in _AS_SETS,
        not_none=function in _NOT_NONE,
        oracle=_ORACLES.get(number),
    )
