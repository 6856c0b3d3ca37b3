"""Checkpoints as directories: one adapter folder a member, moments, state, and a manifest with checksums.

iteration-10.ckpt/
  adapters/<member>/   adapter_config.json, adapter_model.safetensors: loads with peft and vLLM
  moments/<member>.safetensors
  state.pt             counters, population, buffer, callbacks: tensors and plain types only
  manifest.json        sha256 of every file, package versions
"""

import hashlib
import importlib.metadata
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.plugins.io import TorchCheckpointIO
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from typing_extensions import override

from populora import __version__
from populora.errors import CheckpointError

FORMAT = 1
ADAPTER_CONFIG = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
PACKAGES = ("lightning", "peft", "torch", "transformers")


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
        fresh = target.with_name(f".{target.name}.writing-{os.getpid()}")
        try:
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir(parents=True)
            _write(checkpoint, fresh)
            _swap_in(fresh, target)
        except OSError as error:
            shutil.rmtree(fresh, ignore_errors=True)
            raise CheckpointError(
                f"cannot write the checkpoint {target}: {error.strerror or error}. Earlier checkpoints are "
                "untouched; free some space and go on with --ckpt_path last"
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
        _verify(folder)
        try:
            return _read(folder)
        except (OSError, SafetensorError, RuntimeError, ValueError) as error:
            raise CheckpointError(f"the checkpoint {folder} cannot be read: {error}") from error


def _write(checkpoint: Mapping[str, Any], folder: Path) -> None:
    rest = dict(checkpoint)
    for member, (config, factors) in rest.pop("adapters").items():
        adapter = folder / "adapters" / member
        adapter.mkdir(parents=True)
        (adapter / ADAPTER_CONFIG).write_text(config)
        save_file(factors, adapter / ADAPTER_WEIGHTS)
    (folder / "moments").mkdir()
    for member, tensors in rest.pop("moments").items():
        save_file(tensors, folder / "moments" / f"{member}.safetensors")
    torch.save(rest, folder / "state.pt")
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    manifest = {
        "format": FORMAT,
        "populora": __version__,
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "sha256": {str(p.relative_to(folder)): _digest(p) for p in files},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1))
    for p in (*files, folder / "manifest.json"):
        _sync_to_disk(p)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _swap_in(fresh: Path, target: Path) -> None:
    """Put ``fresh`` in ``target``'s place; a crash in between leaves the former one under its old name."""
    former = target.with_name(f".{target.name}.former")
    shutil.rmtree(former, ignore_errors=True)
    if target.exists():
        target.rename(former)
    fresh.rename(target)
    _sync_to_disk(target.parent)
    shutil.rmtree(former, ignore_errors=True)


def _verify(folder: Path) -> None:
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
        expected = manifest["sha256"]
        form = manifest["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"the checkpoint {folder} has no readable manifest.json: {error}") from error
    if form != FORMAT:
        raise CheckpointError(
            f"the checkpoint {folder} has format {form}, this version reads format {FORMAT}"
        )
    for name, digest in expected.items():
        file = folder / name
        if not file.is_file() or _digest(file) != digest:
            state = "is damaged" if file.is_file() else "is missing"
            raise CheckpointError(f"the checkpoint {folder} is not whole: {name} {state}; use an earlier one")


def _read(folder: Path) -> dict[str, Any]:
    checkpoint: dict[str, Any] = torch.load(folder / "state.pt", weights_only=True)
    checkpoint["adapters"] = {
        adapter.name: ((adapter / ADAPTER_CONFIG).read_text(), load_file(adapter / ADAPTER_WEIGHTS))
        for adapter in sorted((folder / "adapters").iterdir())
    }
    checkpoint["moments"] = {p.stem: load_file(p) for p in sorted((folder / "moments").iterdir())}
    return checkpoint
