"""OlympiadBench (He et al. 2024, arXiv 2402.14008): the open English questions of mathematics without images."""

from typing_extensions import override

from populora.evaluation.data import DataSet, Row
from populora.evaluation.mathematics.numbers import read
from populora.evaluation.mathematics.suite import MathItem, MathSuite
from populora.evaluation.suite import suites


@suites.register("olympiadbench")
class OlympiadBench(MathSuite):
    """Answers may be several, in any order; the local file has 675 questions, the hub 674."""

    name = "olympiadbench"
    title = "OlympiadBench"
    data = DataSet(
        suite=name,
        file="olympiadbench_math_en.jsonl.gz",
        sha256="358ca7edfa922a544ddbe7e173eb5dd510c0ca6b2828a6c6851f7429c39833f3",
        hub="Hothan/OlympiadBench",
        revision="91184b52131e7fc9455fef848035173aea8cc01a",
        hub_files=("OlympiadBench/OE_TO_maths_en_COMP/OE_TO_maths_en_COMP.parquet",),
    )

    @override
    def read(self, row: Row, number: int) -> MathItem:
        answer = ", ".join(row["final_answer"])
        notes = []
        if row["is_multiple_answer"]:
            notes.append("There are several answers: separate them by commas.")
        if row["unit"]:
            notes.append(f"Give the answer in the unit {row['unit']}, without writing the unit.")
        question = f"{row['context']}\n{row['question']}" if row["context"] else row["question"]
        return MathItem(str(row["id"]), question, answer, _relative(row["error"], answer), " ".join(notes))


def _relative(error: str | None, answer: str) -> float:
    """Return the benchmark's absolute error as a share of the answer."""
    right = read(answer.strip("$ "))
    return float(error) / abs(float(right.value)) if error and right and right.value else 0.0
