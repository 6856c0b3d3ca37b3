"""Which checkpoints there are, which of them to go on from, and which to keep."""

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from populora.checkpoint_io import read_manifest, verify
from populora.errors import CheckpointError

logger = logging.getLogger(__name__)

SUFFIX = ".ckpt"
LAST, BEST = "last", "best"


@dataclass(frozen=True)
class Saved:
    """A checkpoint folder."""

    path: Path
    written: float
    """Seconds since the epoch."""
    iteration: int | None
    """Completed iterations; None where the manifest cannot be read."""
    score: float | None
    """Mean held-out score of the students, if there is one."""


def saved_in(*folders: Path) -> list[Saved]:
    """Return the checkpoints of some folders, the newest first."""
    paths = {path for folder in folders for path in folder.glob(f"*{SUFFIX}")}
    saved = [_saved(path) for path in sorted(paths) if path.is_dir() and not path.is_symlink()]
    return sorted(saved, key=lambda each: each.written, reverse=True)


def newest_whole(saved: Sequence[Saved]) -> Saved | None:
    """Return the first whole checkpoint, with a warning for each damaged one before it; None where there are none.

    Raises:
        CheckpointError: there are checkpoints, and none is whole.
    """
    for each in saved:
        try:
            verify(each.path)
        except CheckpointError as error:
            logger.warning("Passing over a damaged checkpoint: %s", error)
        else:
            return each
    if saved:
        raise CheckpointError(
            f"none of the {len(saved)} checkpoints in {saved[0].path.parent} is whole; start a new run without "
            "--ckpt_path"
        )
    return None


def superseded(
    saved: Iterable[Saved], began: int, own: Collection[Path], keep: int, best: int
) -> list[Saved]:
    """Return the checkpoints that a run need not keep; the newest that it wrote itself is never among them.

    What another run wrote beyond the iteration this one began from belongs to a course of events that is no more.

    Args:
        saved: Newest first; those without readable manifest are left alone.
        began: Iteration the run began from.
        own: Checkpoints the run wrote.
        keep: How many of the newest to keep.
        best: How many of those with the highest scores to keep besides.
    """
    readable = [each for each in saved if each.iteration is not None]
    valid: dict[int | None, Saved] = {}
    for each in readable:
        if each.path in own or (each.iteration or 0) <= began:
            valid.setdefault(each.iteration, each)
    current = list(valid.values())
    scored = sorted((e for e in current if e.score is not None), key=lambda e: e.score or 0.0, reverse=True)
    kept = [*current[:keep], *scored[:best]]
    return [each for each in readable if each not in kept]


def _saved(path: Path) -> Saved:
    try:
        manifest = read_manifest(path)
    except CheckpointError:
        return Saved(path, path.stat().st_mtime, None, None)
    return Saved(path, manifest.written, manifest.iteration, manifest.score)
