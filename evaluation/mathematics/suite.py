"""What the mathematical suites have in common: how they ask, and how they grade."""

from collections.abc import Sequence
from dataclasses import dataclass

from typing_extensions import override

from populora.evaluation.data import DataSource
from populora.evaluation.mathematics.comparison import plainly_equal
from populora.evaluation.mathematics.extraction import Extraction, extract
from populora.evaluation.mathematics.workers import Comparer, Comparison, Pair
from populora.evaluation.suite import Decoding, Form, Grade, Item, Suite

_INSTRUCTION = "Please reason step by step, and put your final answer within \\boxed{}."
_SHOWN = 80
"""Characters of the right answer in a reason."""


@dataclass(frozen=True)
class MathItem(Item):
    """A question with a final answer."""

    answer: str
    """Plain or in LaTeX."""
    tolerance: float = 0.0
    """Relative difference allowed where the right answer is a decimal; else only equal numbers are right."""
    note: str = ""
    """What the benchmark says about the form of the answer."""


class MathSuite(Suite[MathItem]):
    """Questions whose final answer is compared with the right one."""

    group = "mathematics"
    decoding = Decoding(max_tokens=16_000)

    def __init__(self, source: DataSource = DataSource()) -> None:
        super().__init__(source)
        self._compare = Comparer()

    @override
    def form(self, item: MathItem, chat: bool) -> Form:
        instruction = f"{_INSTRUCTION} {item.note}".strip()
        if chat:
            return Form(f"{item.question}\n\n{instruction}")
        return Form(f"Question: {item.question}\n{instruction}\n\nAnswer:", stop=("\nQuestion:",))

    @override
    def grade(self, answers: Sequence[tuple[MathItem, str]]) -> list[Grade]:
        extractions = [extract(response) for _, response in answers]
        verdicts = [
            _at_once(item, extraction) for (item, _), extraction in zip(answers, extractions, strict=True)
        ]
        unclear = [index for index, verdict in enumerate(verdicts) if verdict is None]
        pairs = [Pair(answers[i][0].answer, extractions[i].answer, answers[i][0].tolerance) for i in unclear]
        comparisons = iter(self._compare(pairs) if pairs else ())
        return [
            _grade(item, extraction, verdict or next(comparisons))
            for (item, _), extraction, verdict in zip(answers, extractions, verdicts, strict=True)
        ]

    @override
    def close(self) -> None:
        self._compare.close()


def _at_once(item: MathItem, extraction: Extraction) -> Comparison | None:
    if not extraction.answer:
        return Comparison(False, extraction.reason)
    equal = plainly_equal(item.answer, extraction.answer, item.tolerance)
    return None if equal is None else Comparison(equal)


def _grade(item: MathItem, extraction: Extraction, comparison: Comparison) -> Grade:
    expected = item.answer if len(item.answer) <= _SHOWN else f"{item.answer[:_SHOWN]}…"
    reason = "" if comparison.equal else comparison.failure or f"wrong: expected {expected}"
    return Grade(comparison.equal, extraction.answer, reason)
