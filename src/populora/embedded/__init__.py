"""The embedded base: a small language model, and the language that it speaks."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

__all__ = ["model_path"]


def model_path() -> Path:
    """Returns the folder of the embedded model, in Hugging Face layout."""
    return Path(str(files("populora.embedded"))) / "model"
