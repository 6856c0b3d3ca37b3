"""MATH-500 (Lightman et al. 2023, arXiv 2305.20050): five hundred questions of MATH's test set."""

from typing_extensions import override

from populora.evaluation.data import DataSet, Row
from populora.evaluation.mathematics.suite import MathItem, MathSuite
from populora.evaluation.suite import suites


@suites.register("math500")
class Math500(MathSuite):
    """Answers in LaTeX: numbers, expressions, tuples, intervals, matrices, words."""

    name = "math500"
    title = "MATH-500"
    data = DataSet(
        suite=name,
        file="math500.jsonl",
        sha256="35dc41080a3680858b27fa7e0533d2d547825316fc5dafe5d316f4ccc5a06132",
        hub="HuggingFaceH4/MATH-500",
        revision="6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be",
        hub_files=("test.jsonl",),
    )

    @override
    def read(self, row: Row, number: int) -> MathItem:
        return MathItem(row["unique_id"], row["problem"], row["answer"])
