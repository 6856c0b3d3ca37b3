"""Evaluation of bases and populations on benchmark suites, usable without training.

>>> from populora.evaluation import evaluate  # doctest: +SKIP
>>> evaluate("HuggingFaceTB/SmolLM2-135M-Instruct", ["gsm8k"], adapters={"mine": "my-adapter"})  # doctest: +SKIP
"""

from typing import TYPE_CHECKING, Any

from populora.evaluation.data import DataSource

if TYPE_CHECKING:
    from populora.evaluation.standalone import evaluate, regrade

__all__ = ["DataSource", "evaluate", "regrade"]


def __getattr__(name: str) -> Any:
    """Import what needs torch only when it is asked for: graders run without it."""
    if name in ("evaluate", "regrade"):
        from populora.evaluation import standalone

        return getattr(standalone, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
