"""What a new run takes over from an earlier one in the same folder."""

import fcntl
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from lightning.fabric.plugins.environments.slurm import SLURMEnvironment

from populora.checkpoints import BEST, LAST, SUFFIX, newest_whole, saved_in
from populora.errors import CheckpointError, ConfigError

logger = logging.getLogger(__name__)

REQUEUED = f"hpc_ckpt_*{SUFFIX}"
"""Checkpoints that Lightning writes when a cluster's time limit comes."""
OUTPUTS = ("config.yaml", "hparams.yaml", "samples.jsonl", "events.out.tfevents.*", "checkpoints", REQUEUED)
"""What runs leave in ``trainer.default_root_dir``."""


@contextmanager
def occupied(root: Path) -> Iterator[None]:
    """Keep other runs out of a folder while this one is at work in it.

    Raises:
        ConfigError: another run is at work in it.
    """
    root.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ConfigError(
            f"trainer.default_root_dir: another run is at work in {root}; wait for its end or choose another folder"
        ) from error
    except OSError as error:  # a file system without locks
        logger.debug("%s cannot be locked: %s", root, error)
    try:
        yield
    finally:
        os.close(descriptor)


def requeued(root: Path) -> bool:
    """Say whether this is a cluster's job that its time limit had interrupted."""
    return SLURMEnvironment.detect() and any(root.glob(REQUEUED))


def chosen_checkpoint(choice: str | None, folders: Sequence[Path]) -> str | None:
    """Return the checkpoint that ``--ckpt_path`` means: a damaged one is passed over with a warning.

    Args:
        choice: ``last`` for the newest, ``best`` for the one with the highest score; anything else stands for itself.
        folders: Where checkpoints are.

    Returns:
        None where none was asked for, or where there is none yet and ``last`` was asked for.

    Raises:
        CheckpointError: all are damaged, or none has a score.
    """
    if choice not in (LAST, BEST):
        return choice
    saved = saved_in(*folders)
    if choice == BEST:
        scored = [each for each in saved if each.score is not None]
        saved = sorted(scored, key=lambda each: each.score or 0.0, reverse=True)
    found = newest_whole(saved)
    if found is None and choice == BEST:
        raise CheckpointError(f"--ckpt_path best: no checkpoint in {folders[0]} has a held-out score")
    if found is None:
        logger.warning("--ckpt_path last: there is no checkpoint in %s yet; starting anew.", folders[0])
        return None
    logger.info("Going on from %s, after iteration %s.", found.path, found.iteration)
    return str(found.path)


def set_aside(root: Path) -> None:
    """Move what an earlier run left into a folder of its own, so that no two runs mix."""
    outputs = [path for pattern in OUTPUTS for path in sorted(root.glob(pattern))]
    if not outputs:
        return
    aside = next(path for n in count(1) if not (path := root / f"earlier-{n}").exists())
    aside.mkdir()
    for path in outputs:
        path.rename(aside / path.name)
    logger.info("What an earlier run left in %s is now in %s.", root, aside)
