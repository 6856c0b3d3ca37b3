"""Checkpoints on disk: whole or refused, never half."""

import importlib.metadata
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.serialization import get_unsafe_globals_in_checkpoint

from populora import checkpoint_io
from populora.checkpoint_io import DirectoryCheckpointIO, read_manifest, verify
from populora.errors import CheckpointError
from populora.population.adapter_files import config_text

MEMBERS = ("teacher-0", "student-0")


def state(iteration: int = 3, size: int = 64, **more: Any) -> dict[str, Any]:
    """What a run hands over, in miniature."""
    generator = torch.Generator().manual_seed(iteration)
    factors = {f"base_model.model.q.lora_{f}.weight": torch.randn(4, size, generator=generator) for f in "AB"}
    return {
        "adapters": {name: (config_text(4, 8.0, ["q"], "base"), factors) for name in MEMBERS},
        "moments": {name: {"q.a.exp_avg": torch.full((4, size), 0.5)} for name in MEMBERS},
        "populora": {"iteration": iteration, "seed": 7},
        "callbacks": {"Archive": {"centroids": torch.eye(3), "problems": [{"program": "def f(x): pass"}]}},
        **more,
    }


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@pytest.fixture
def io() -> DirectoryCheckpointIO:
    return DirectoryCheckpointIO()


@pytest.fixture
def saved(io: DirectoryCheckpointIO, tmp_path: Path) -> Path:
    io.save_checkpoint(state(score=0.25, config="seed_everything: 7\n"), tmp_path / "a.ckpt")
    return tmp_path / "a.ckpt"


def test_what_is_saved_comes_back(io: DirectoryCheckpointIO, saved: Path) -> None:
    assert same(io.load_checkpoint(saved), state())
    assert (saved / "config.yaml").read_text() == "seed_everything: 7\n"
    manifest = verify(saved)
    assert (manifest.iteration, manifest.score) == (3, 0.25)
    assert manifest.versions["torch"] == importlib.metadata.version("torch")
    assert {"python", "populora", "lightning", "peft", "transformers"} <= manifest.versions.keys()


def test_nothing_in_it_needs_pickle(saved: Path) -> None:
    assert get_unsafe_globals_in_checkpoint(saved / "state.pt") == []
    kinds = {path.suffix for path in saved.rglob("*") if path.is_file()}
    assert kinds == {".json", ".safetensors", ".pt", ".yaml"}


def _flip(file: Path, position: int) -> None:
    content = bytearray(file.read_bytes())
    content[position] ^= 0x10
    file.write_bytes(content)


FILES = (
    "manifest.json",
    "state.pt",
    "config.yaml",
    "adapters/student-0/adapter_config.json",
    "adapters/student-0/adapter_model.safetensors",
    "moments/teacher-0.safetensors",
)


@pytest.mark.parametrize("region", [0.0, 0.3, 0.6, 1.0])
@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_anywhere_is_noticed(
    io: DirectoryCheckpointIO, saved: Path, name: str, region: float
) -> None:
    size = (saved / name).stat().st_size
    _flip(saved / name, min(int(region * size), size - 1))
    with pytest.raises(CheckpointError, match=Path(name).name.replace(".", r"\.")):
        io.load_checkpoint(saved)


def test_a_manifest_whose_every_byte_was_tried_never_lies(saved: Path) -> None:
    """Only a blank between values may change unnoticed, and then nothing else has changed."""
    file = saved / "manifest.json"
    content, truth = file.read_bytes(), json.loads(file.read_text())
    for position in range(0, len(content), 7):
        changed = bytearray(content)
        changed[position] ^= 0x04
        file.write_bytes(changed)
        try:
            verify(saved)
        except CheckpointError:
            continue
        assert json.loads(file.read_text()) == truth


@pytest.mark.parametrize("name", FILES)
def test_a_missing_or_short_file_is_named(io: DirectoryCheckpointIO, saved: Path, name: str) -> None:
    content = (saved / name).read_bytes()
    (saved / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(CheckpointError, match=Path(name).name):
        io.load_checkpoint(saved)
    (saved / name).unlink()
    with pytest.raises(CheckpointError, match=Path(name).name):
        io.load_checkpoint(saved)


def test_a_file_too_many_is_named(saved: Path) -> None:
    (saved / "adapters" / "stray").mkdir()
    (saved / "adapters" / "stray" / "adapter_config.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"stray/adapter_config\.json does not belong"):
        verify(saved)


def test_what_is_no_checkpoint_is_told(io: DirectoryCheckpointIO, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="not a checkpoint folder"):
        io.load_checkpoint(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match=r"no readable manifest\.json"):
        io.load_checkpoint(tmp_path)


def test_other_versions_are_told(
    io: DirectoryCheckpointIO, saved: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    io.load_checkpoint(saved)
    assert not caplog.text
    monkeypatch.setattr(checkpoint_io.platform, "python_version", lambda: "9.9.9")
    io.load_checkpoint(saved)
    assert "→ 9.9.9" in caplog.text


@pytest.fixture
def limited_files() -> Iterator[None]:
    """No file may grow beyond 16 KiB."""
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16 << 10, former[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, former)


@pytest.mark.parametrize("part", ["adapters", "moments", "callbacks"])
def test_a_file_that_cannot_grow_leaves_the_former_checkpoint(
    io: DirectoryCheckpointIO, saved: Path, limited_files: None, part: str
) -> None:
    big = {name: torch.zeros(1 << 16) for name in MEMBERS}
    grown = {
        "adapters": {
            "adapters": {name: (config_text(4, 8.0, ["q"], "base"), {"x": big[name]}) for name in MEMBERS}
        },
        "moments": {"moments": {name: {"x": big[name]} for name in MEMBERS}},
        "callbacks": {"callbacks": big},
    }[part]
    with pytest.raises(
        CheckpointError, match=r"cannot write the checkpoint.*Earlier checkpoints are untouched"
    ):
        io.save_checkpoint(state(iteration=4) | grown, saved)
    assert same(io.load_checkpoint(saved), state())
    assert sorted(path.name for path in saved.parent.iterdir()) == ["a.ckpt"]


@pytest.fixture
def small_disk(disk: Callable[[int], Path]) -> Path:
    """A file system of 256 KiB."""
    return disk(256)


def test_a_full_disk_leaves_the_former_checkpoint(io: DirectoryCheckpointIO, small_disk: Path) -> None:
    io.save_checkpoint(state(size=512), small_disk / "a.ckpt")
    for size in (2_000, 8_000, 1 << 16):
        with pytest.raises(CheckpointError, match=r"No space|cannot write"):
            io.save_checkpoint(state(iteration=4, size=size), small_disk / "b.ckpt")
        assert [path.name for path in small_disk.iterdir()] == ["a.ckpt"]
    assert same(io.load_checkpoint(small_disk / "a.ckpt"), state(size=512))


def test_everything_is_on_disk_before_the_checkpoint_has_its_name(
    io: DirectoryCheckpointIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    fsync, rename = os.fsync, Path.rename

    def record_sync(descriptor: int) -> None:
        events.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    def record_rename(self: Path, target: Path) -> Path:
        events.append(f"-> {target.name}")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(Path, "rename", record_rename)
    io.save_checkpoint(state(), tmp_path / "a.ckpt")
    named = events.index("-> a.ckpt")
    fresh = tmp_path / f".writing-{os.getpid()}"
    content = {
        str(fresh / path.relative_to(tmp_path / "a.ckpt")) for path in (tmp_path / "a.ckpt").rglob("*")
    }
    assert set(events[:named]) == content | {str(fresh)}
    assert events[named + 1 :] == [str(tmp_path)]


def test_what_a_dead_process_left_goes_and_what_a_living_one_writes_stays(
    io: DirectoryCheckpointIO, tmp_path: Path
) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for owner in (dead.pid, os.getppid()):
        (tmp_path / f".writing-{owner}").mkdir()
        (tmp_path / f".former-{owner}").mkdir()
    io.save_checkpoint(state(), tmp_path / "a.ckpt")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"a.ckpt", f".writing-{os.getppid()}", f".former-{os.getppid()}"}


def test_a_checkpoint_can_be_written_over_and_removed(io: DirectoryCheckpointIO, saved: Path) -> None:
    io.save_checkpoint(state(iteration=9), saved)
    assert read_manifest(saved).iteration == 9
    io.remove_checkpoint(saved)
    assert not list(saved.parent.iterdir())
    io.remove_checkpoint(saved)
