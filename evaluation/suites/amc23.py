"""American Mathematics Competition of 2023: forty questions with numbers as answers."""

from typing_extensions import override

from populora.evaluation.data import DataSet, Row
from populora.evaluation.mathematics.suite import MathItem, MathSuite
from populora.evaluation.suite import suites


@suites.register("amc23")
class AMC23(MathSuite):
    """AMC 12A and 12B of 2023; answers are stored as floats."""

    name = "amc23"
    title = "AMC 23"
    data = DataSet(
        suite=name,
        file="amc23.jsonl",
        sha256="43707e1ca784602d8479de24ee8ce36609dbebc46dd152b0b12a46611aa898a4",
        hub="math-ai/amc23",
        revision="80815d37005feb82cd7f8fbc6901d5d3eff43057",
        hub_files=("test-00000-of-00001.parquet",),
    )

    @override
    def read(self, row: Row, number: int) -> MathItem:
        return MathItem(str(row["id"]), row["question"], f"{float(row['answer']):g}")
