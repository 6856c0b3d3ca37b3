"""Runs of the real command line on the tiny base."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from populora.checkpoint_io import DirectoryCheckpointIO
from populora.cli import main

Run = Callable[..., dict[str, Any]]

CALLBACKS = [
    "GracefulStop",
    "RatingUpdates",
    {"class_path": "PopulationEvaluation", "init_args": {"every": 3, "count": 2}},
    {"class_path": "TeacherDifficulty", "init_args": {"every": 3, "count": 2}},
    {"class_path": "Evolution", "init_args": {"interval": 2}},
    {"class_path": "Archive", "init_args": {"cells": 16}},
    "PopulationStatistics",
    "CompletionSamples",
    "Throughput",
    "RunProgress",
    "RunSummary",
    {"class_path": "RunCheckpoint", "init_args": {"every": 3}},
]


def _named(entry: Any) -> dict[str, Any]:
    entry = {"class_path": entry} if isinstance(entry, str) else dict(entry)
    return entry | {"class_path": f"populora.callbacks.{entry['class_path']}"}


@pytest.fixture
def run(tiny_base: Path, tmp_path: Path) -> Run:
    """Return a function that runs ``fit`` to some iteration and returns the last checkpoint."""
    config = {
        "seed_everything": 3,
        "model": {
            "base": {"path": str(tiny_base), "prompts": "compact"},
            "population": {"teachers": 2, "students": 2},
            "adapter": {"rank": 8, "alpha": 16},
            "learning": {"learning_rate": 1e-3},
        },
        "data": {
            "rollout": {
                "group_size": 2,
                "attempts": 3,
                "references": 1,
                "max_proposal_tokens": 400,
                "max_attempt_tokens": 400,
            },
            "engine": {"name": "scripted"},
            "verifier": {"workers": 1},
        },
        "trainer": {"accelerator": "cpu", "callbacks": [_named(entry) for entry in CALLBACKS]},
    }
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(config))

    def fit(folder: str, iterations: int, *more: str) -> dict[str, Any]:
        root = tmp_path / folder
        overrides = [f"--data.iterations={iterations}", f"--trainer.default_root_dir={root}"]
        assert main(["fit", "--config", str(file), *overrides, *more]) == 0
        return DirectoryCheckpointIO().load_checkpoint(root / "checkpoints" / "last.ckpt")

    return fit
