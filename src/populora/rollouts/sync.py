"""Bringing the trainer's adapters to the engine, and proving that they arrived."""

import fcntl
import logging
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TextIO

import torch
from safetensors import SafetensorError

from populora.errors import AdapterSyncError
from populora.records import Member
from populora.rollouts.engine import Engine, LoadedAdapter

_SHARED_MEMORY = Path("/dev/shm")
_PREFIX = "populora-"
_LOCK = "lock"
_ROOM = 2**30
"""Bytes that must be free in memory for adapters to pass through it."""

logger = logging.getLogger(__name__)


class AdapterSource(Protocol):
    """Where adapters come from: the bank."""

    def export(self, name: str, folder: Path, dtype: torch.dtype) -> None:
        """Write a member's adapter in PEFT's format."""

    def fingerprint(self, name: str, dtype: torch.dtype) -> str:
        """Return the digest of a member's adapter as the engine must hold it."""


@dataclass(frozen=True)
class SyncReport:
    """What one synchronisation did."""

    loaded: tuple[Member, ...]
    """Members whose version the engine did not hold yet."""
    unchanged: tuple[Member, ...]
    """Those among them with the same weights as the version before."""
    bytes: int
    """Size of the exported adapters."""
    seconds: float


class AdapterSync:
    """Keeps an engine's adapters equal to the trainer's.

    Every version of a member has a folder of its own, so that nothing the engine remembers of an older one can be
    taken for it. After loading, the digest of the weights in the engine must equal the trainer's.

    Args:
        engine: A started engine.
        dtype: Type of the engine's weights.
        folder: Adapters are written to a folder of their own inside this one, by default in memory; :meth:`close` or
            the end of the program removes it.
    """

    def __init__(self, engine: Engine, dtype: torch.dtype, folder: Path | None = None) -> None:
        self._engine = engine
        self._dtype = dtype
        self._folder = _PrivateFolder(folder or _memory_folder())

    def __call__(self, bank: AdapterSource, members: Sequence[Member]) -> SyncReport:
        """Load every member whose present version the engine does not hold, and forget cached prompts.

        Raises:
            AdapterSyncError: the engine holds other weights than the bank.
            EngineError: the engine cannot load an adapter.
        """
        start = time.perf_counter()
        loaded, unchanged, size = [], [], 0
        self._folder.restore()
        for member in members:
            held = self._engine.adapters.get(member.name)
            if held is not None and held.version == member.version:
                continue
            adapter = self._load(bank, member)
            size += sum(file.stat().st_size for file in adapter.path.iterdir())
            loaded.append(member)
            if held is not None and held.fingerprint == adapter.fingerprint:
                unchanged.append(member)
        self._folder.keep({adapter.path for adapter in self._engine.adapters.values()})
        self._engine.reset_cache()
        return SyncReport(tuple(loaded), tuple(unchanged), size, time.perf_counter() - start)

    def close(self) -> None:
        """Remove the exported adapters; the engine cannot be restarted afterwards."""
        self._folder.remove()

    def _load(self, bank: AdapterSource, member: Member) -> LoadedAdapter:
        folder = self._folder.path / f"{member.name}-v{member.version}"
        try:
            bank.export(member.name, folder, self._dtype)
        except (OSError, SafetensorError) as error:
            raise AdapterSyncError(
                f"cannot write version {member.version} of {member.name} to {folder.parent}: {error}. Free some space "
                "there; in a container give it more shared memory (docker run --shm-size)"
            ) from error
        expected = bank.fingerprint(member.name, self._dtype)
        adapter = LoadedAdapter(member.name, member.version, folder, expected)
        self._engine.load(adapter)
        found = self._engine.fingerprint(member.name)
        if found != expected:
            raise AdapterSyncError(
                f"the engine does not hold version {member.version} of {member.name}: its weights have the digest "
                f"{found}, the trainer's {expected}. Generating with them would train on another policy's "
                "responses; please report this with the engine's and the base's name"
            )
        return adapter


class _PrivateFolder:
    """A folder that goes with this object, with the process, or with the next run at the latest.

    A process killed outright leaves its folder behind, and with it the memory; a lock on a file inside tells others
    whether the owner still lives.
    """

    def __init__(self, root: Path) -> None:
        with _alone_in(root):
            for lock in root.glob(f"{_PREFIX}*/{_LOCK}"):
                _remove_orphan(lock)
            self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=root))
            self._lock = self._occupy()
        self.remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def restore(self) -> None:
        """Make the folder again if someone has removed it."""
        if not (self.path / _LOCK).exists():
            logger.warning("%s was removed from outside; it is made again", self.path)
            self.path.mkdir(exist_ok=True)
            self._lock = self._occupy()

    def keep(self, wanted: Collection[Path]) -> None:
        """Remove all folders inside but the wanted ones."""
        for folder in self.path.iterdir():
            if folder.is_dir() and folder not in wanted:
                shutil.rmtree(folder, ignore_errors=True)

    def _occupy(self) -> TextIO:
        lock = (self.path / _LOCK).open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lock


def _memory_folder() -> Path:
    """Return the folder in memory, or that for temporary files where memory is short, as in many containers."""
    usable = _SHARED_MEMORY.is_dir() and os.access(_SHARED_MEMORY, os.W_OK)
    roomy = usable and shutil.disk_usage(_SHARED_MEMORY).free >= _ROOM
    return _SHARED_MEMORY if roomy else Path(tempfile.gettempdir())


@contextmanager
def _alone_in(root: Path) -> Iterator[None]:
    """Let no other run look for orphans here before a new folder has its lock."""
    descriptor = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _remove_orphan(lock: Path) -> None:
    try:
        with lock.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
    except OSError:
        return
