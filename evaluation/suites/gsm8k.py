"""GSM8K (Cobbe et al. 2021, arXiv 2110.14168): grade-school word problems with whole numbers as answers."""

from typing_extensions import override

from populora.evaluation.data import DataSet, Row
from populora.evaluation.mathematics.suite import MathItem, MathSuite
from populora.evaluation.suite import suites


@suites.register("gsm8k")
class GSM8K(MathSuite):
    """The right answer stands behind ``####`` at the end of the given solution."""

    name = "gsm8k"
    title = "GSM8K"
    data = DataSet(
        suite=name,
        file="gsm8k_test.jsonl",
        sha256="3730d312f6e3440559ace48831e51066acaca737f6eabec99bccb9e4b3c39d14",
        hub="openai/gsm8k",
        revision="cc7b047b6e5bb11b4f1af84efc572db110a51b3c",
        hub_files=("main/test-00000-of-00001.parquet",),
    )

    @override
    def read(self, row: Row, number: int) -> MathItem:
        _, marked, answer = row["answer"].rpartition("####")
        if not marked:
            raise ValueError("there is no #### in its answer")
        return MathItem(str(number), row["question"], answer.strip().replace(",", ""))
