"""Minerva's undergraduate questions (Lewkowycz et al. 2022, arXiv 2206.14858), from MIT OpenCourseWare."""

from typing_extensions import override

from populora.evaluation.data import DataSet, Row
from populora.evaluation.mathematics.suite import MathItem, MathSuite
from populora.evaluation.suite import suites

TOLERANCE = 1e-4
"""Relative difference at which a physical quantity counts as right, as in the evaluation of Qwen2.5-Math."""


@suites.register("minerva")
class Minerva(MathSuite):
    """Physical quantities and expressions."""

    name = "minerva"
    title = "Minerva"
    data = DataSet(
        suite=name,
        file="minerva_math.jsonl",
        sha256="9fd44d1c3a3a09f891f2bd437d020b0564a54c1d331cc9159c3cc846ac246c73",
        hub="math-ai/minervamath",
        revision="main",
        hub_files=("test.jsonl",),
    )

    @override
    def read(self, row: Row, number: int) -> MathItem:
        question = row["problem"] if "problem" in row else row["question"]
        return MathItem(str(row.get("idx", number)), question, str(row["answer"]), TOLERANCE)
