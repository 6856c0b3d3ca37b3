"""The embedded base: a small language model, and the language of programs that it was trained on."""

from importlib.resources import files
from pathlib import Path

from populora.embedded.problems import MeasuredProblem, held_out_problems, starting_problems
from populora.embedded.split import is_held_out

__all__ = ["MeasuredProblem", "held_out_problems", "is_held_out", "model_path", "starting_problems"]


def model_path() -> Path:
    """Return the folder of the embedded model, in Hugging Face layout."""
    return Path(str(files("populora.embedded"))) / "model"
