"""American Invitational Mathematics Examination: thirty questions a year, answers from 0 to 999."""

from typing_extensions import override

from populora.evaluation.data import DataSet, Row
from populora.evaluation.mathematics.extraction import extract
from populora.evaluation.mathematics.suite import MathItem, MathSuite
from populora.evaluation.suite import suites


class _AIME(MathSuite):
    @override
    def read(self, row: Row, number: int) -> MathItem:
        question = row["question"] if "question" in row else row["problem"]
        answer = row["answer"] if "answer" in row else extract(row["solution"]).answer
        return MathItem(str(row["id"]), question, str(int(answer)))


@suites.register("aime24")
class AIME24(_AIME):
    """AIME I and II of 2024; the hub has answers only boxed in solutions."""

    name = "aime24"
    title = "AIME 24"
    data = DataSet(
        suite=name,
        file="aime24.jsonl",
        sha256="af2b8bd2aa911b6333ad0df32f3ca05c7ae8ed10f1731f4372c8ae26990bf7ac",
        hub="math-ai/aime24",
        revision="83a7f387baaa524a8bda0022eac0541582297103",
        hub_files=("test-00000-of-00001.parquet",),
    )


@suites.register("aime25")
class AIME25(_AIME):
    """AIME I and II of 2025."""

    name = "aime25"
    title = "AIME 25"
    data = DataSet(
        suite=name,
        file="aime25.jsonl",
        sha256="800182474bfa3443f74f9c151f9b0f35a03ab3777ba7dbed2d632ec1c3a0ce02",
        hub="math-ai/aime25",
        revision="563bb8404243c5f09de6ec262f2db674fe5bce9b",
        hub_files=("test.jsonl",),
    )
