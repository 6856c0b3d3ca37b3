"""Runs of the real command line on the tiny base, in this process and in others that can be killed."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from populora.checkpoint_io import DirectoryCheckpointIO
from populora.cli import main

Run = Callable[..., dict[str, Any]]
State = dict[str, Any]

METHOD_STATE = ("adapters", "moments", "populora", "RolloutDataModule", "callbacks")

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
FEW_CALLBACKS = [
    "GracefulStop",
    "RatingUpdates",
    {"class_path": "Evolution", "init_args": {"interval": 2}},
    {"class_path": "Archive", "init_args": {"cells": 16, "figure_every": 100}},
    {"class_path": "CompletionSamples", "init_args": {"every": 1, "count": 1}},
    {"class_path": "RunCheckpoint", "init_args": {"every": 2}},
]


def named(entry: Any) -> dict[str, Any]:
    entry = {"class_path": entry} if isinstance(entry, str) else dict(entry)
    return entry | {"class_path": f"populora.callbacks.{entry['class_path']}"}


def settings(base: Path, callbacks: list[Any]) -> dict[str, Any]:
    """A run of two teachers and two students on a scripted engine."""
    return {
        "seed_everything": 3,
        "model": {
            "base": {"path": str(base), "prompts": "compact"},
            "population": {"teachers": 2, "students": 2},
            "adapter": {"rank": 8, "alpha": 16},
            "learning": {"learning_rate": 1e-3, "mismatch_limit": 1e9},
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
        "trainer": {"accelerator": "cpu", "callbacks": [named(entry) for entry in callbacks]},
    }


def _flat(value: Any, path: str = "") -> State:
    """Spell a nested structure out, one entry a leaf."""
    if isinstance(value, dict):
        return {k: v for key, item in value.items() for k, v in _flat(item, f"{path}/{key}").items()}
    if isinstance(value, list | tuple):
        return {k: v for i, item in enumerate(value) for k, v in _flat(item, f"{path}/{i}").items()}
    return {path: value}


class Checkpoints:
    """Reads and compares checkpoints."""

    @staticmethod
    def last(root: Path) -> State:
        """Load what ``last.ckpt`` links to."""
        return DirectoryCheckpointIO().load_checkpoint(root / "checkpoints" / "last.ckpt")

    @staticmethod
    def differences(one: State, other: State) -> list[str]:
        """Name what decides how a run goes on and is not bit for bit the same in both.

        Where Lightning's own loops stand is left out.
        """
        left, right = (
            _flat({k: v for k, v in each.items() if k in METHOD_STATE} if "loops" in each else each)
            for each in (one, other)
        )
        return sorted(left.keys() ^ right.keys()) + [
            key
            for key in left.keys() & right.keys()
            if not (
                torch.equal(left[key], right[key])
                if isinstance(left[key], torch.Tensor)
                else left[key] == right[key]
            )
        ]


@pytest.fixture(scope="session")
def checkpoints() -> Checkpoints:
    return Checkpoints()


@pytest.fixture
def config(tiny_base: Path, tmp_path: Path) -> Path:
    """The config of a run with all callbacks."""
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(settings(tiny_base, CALLBACKS)))
    return file


@pytest.fixture
def run(config: Path, tmp_path: Path) -> Run:
    """Return a function that runs ``fit`` to some iteration and returns the last checkpoint."""

    def fit(folder: str, iterations: int, *more: str) -> State:
        root = tmp_path / folder
        overrides = [f"--data.iterations={iterations}", f"--trainer.default_root_dir={root}"]
        assert main(["fit", "--config", str(config), *overrides, *more]) == 0
        return Checkpoints.last(root)

    return fit


@dataclass(frozen=True)
class Outcome:
    """How a launched command ended."""

    pid: int
    code: int
    """Exit code, or minus the signal that killed it."""
    moments: int
    """Stages begun and file operations made; 0 for one that was killed."""
    said: str
    """Its standard error."""


class Launcher:
    """Runs commands in children of one process that has everything imported already."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("launcher.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(
        self,
        arguments: list[str],
        root: Path,
        signals: dict[int, int] | None = None,
        environment: dict[str, str] | None = None,
    ) -> Outcome:
        """Run a command that sends itself signals at some of its moments."""
        order = {
            "arguments": arguments,
            "root": str(root),
            "signals": list((signals or {}).items()),
            "environment": environment or {},
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return Outcome(**json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="session")
def launch() -> Iterator[Launcher]:
    """A launcher for the whole session."""
    launcher = Launcher()
    yield launcher
    launcher.close()


@pytest.fixture(scope="session")
def few() -> Callable[[Path], dict[str, Any]]:
    """Return what makes the settings of a run with few callbacks."""
    return lambda base: settings(base, FEW_CALLBACKS)
