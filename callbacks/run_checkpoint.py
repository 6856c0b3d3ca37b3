"""Checkpoints every so many iterations, at the end, and when a run is stopped."""

import logging
import os
from itertools import chain, count
from pathlib import Path
from statistics import fmean
from typing import Any

import lightning as L
from lightning.pytorch.callbacks import Checkpoint
from typing_extensions import override

from populora.callbacks.population_evaluation import PopulationEvaluation
from populora.callbacks.run import data_of, find_callback, module_of
from populora.callbacks.tensorboard import forget_after
from populora.checkpoint_io import sync_to_disk
from populora.checkpoints import LAST, SUFFIX, saved_in, superseded
from populora.errors import CheckpointError, ConfigError
from populora.records import RolloutBatch

logger = logging.getLogger(__name__)


class RunCheckpoint(Checkpoint):
    """Saves the run so that it can go on as if nothing had happened.

    Also saves when training ends, when :class:`~populora.callbacks.GracefulStop` ends it, and when an error or a
    second Ctrl-C ends it outside of the gradient step. A new checkpoint is complete on disk before an older one is
    removed. Only the folder is looked at to decide what to keep, so nothing is forgotten when a process dies.
    ``last.ckpt`` links to the newest.

    Args:
        every: Iterations between two checkpoints.
        keep: How many of the newest to keep.
        best: How many to keep besides, by the students' mean held-out score; needs
            :class:`~populora.callbacks.PopulationEvaluation`, and counts those saved when it has just evaluated.
        folder: Where; none: ``<default_root_dir>/checkpoints``.

    Raises:
        ConfigError: an argument is out of bounds.
    """

    def __init__(self, every: int = 5, keep: int = 2, best: int = 1, folder: str | None = None) -> None:
        for name, value, least in (("every", every, 1), ("keep", keep, 1), ("best", best, 0)):
            if value < least:
                raise ConfigError(f"RunCheckpoint({name}=…) must be at least {least}, got {value}")
        self._every = every
        self._keep = keep
        self._best = best
        self._folder = folder
        self._began = 0
        self._saved: int | None = None
        self._saved_score: float | None = None
        self._own: set[Path] = set()
        self._settled = False

    def location(self, trainer: L.Trainer) -> Path:
        """Return the folder of the checkpoints."""
        return Path(self._folder or Path(trainer.default_root_dir) / "checkpoints").expanduser().absolute()

    @override
    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Take the run up where it stands.

        Raises:
            ConfigError: a run that begins finds the checkpoints of another.
        """
        self._began = module_of(trainer).iteration
        others = saved_in(self.location(trainer))
        if self._began == 0 and others:
            raise ConfigError(
                f"{self.location(trainer)} holds checkpoints of another run: go on from them with --ckpt_path last, "
                "or choose another trainer.default_root_dir or RunCheckpoint(folder=…)"
            )
        self._saved = self._began or None
        self._settled = True
        forget_after(trainer, self._began)

    @override
    def on_train_batch_start(
        self, trainer: L.Trainer, pl_module: L.LightningModule, batch: RolloutBatch, batch_idx: int
    ) -> None:
        self._settled = False

    @override
    def on_train_batch_end(
        self,
        trainer: L.Trainer,
        pl_module: L.LightningModule,
        outputs: Any,
        batch: RolloutBatch,
        batch_idx: int,
    ) -> None:
        """Save where it is due; checkpoint callbacks come after all others, so the iteration is complete."""
        self._settled = True
        if (batch.iteration + 1) % self._every == 0 or trainer.should_stop:
            self._save(trainer)

    @override
    def on_train_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Save the end, or save it again where a last evaluation has given it a score.

        A run that died between its last checkpoint and the removal of an older one removes it now.
        """
        finished = module_of(trainer).iteration >= data_of(trainer).iterations
        unscored = finished and self._saved_score != self._score(trainer)
        if self._saved != module_of(trainer).iteration or unscored:
            self._save(trainer)
        else:
            self._prune(trainer)

    @override
    def on_exception(
        self, trainer: L.Trainer, pl_module: L.LightningModule, exception: BaseException
    ) -> None:
        fit = self._settled and self._saved != module_of(trainer).iteration
        if not fit or isinstance(exception, CheckpointError):
            return
        try:
            self._save(trainer)
        except CheckpointError as error:
            logger.error("%s", error)

    @override
    def on_save_checkpoint(
        self, trainer: L.Trainer, pl_module: L.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        checkpoint["score"] = self._score(trainer)

    def _save(self, trainer: L.Trainer) -> None:
        iteration, folder = module_of(trainer).iteration, self.location(trainer)
        data_of(trainer).tell("save", 0, 1)
        target = _free(folder, iteration)
        trainer.save_checkpoint(target)
        self._saved, self._saved_score = iteration, self._score(trainer)
        self._own.add(target)
        _link(folder / f"{LAST}{SUFFIX}", target)
        self._prune(trainer)
        if trainer.should_stop or trainer.interrupted:
            logger.warning("Saved after iteration %d: %s", iteration, target)

    def _prune(self, trainer: L.Trainer) -> None:
        saved = saved_in(self.location(trainer))
        for old in superseded(saved, self._began, self._own, self._keep, self._best):
            trainer.strategy.remove_checkpoint(old.path)

    def _score(self, trainer: L.Trainer) -> float | None:
        """Mean held-out score of the students that were evaluated after this very iteration."""
        module, evaluation = module_of(trainer), find_callback(trainer, PopulationEvaluation)
        if evaluation is None:
            return None
        latest = [evaluation.latest(student) for student in module.population.students]
        present = [scores.mean for scores in latest if scores and scores.iteration == module.iteration]
        return fmean(present) if present else None


def _free(folder: Path, iteration: int) -> Path:
    """Return a name that is not taken, so that no checkpoint is ever written over."""
    suffixes = chain([""], (f"-{number}" for number in count(2)))
    names = (folder / f"iteration-{iteration:05}{suffix}{SUFFIX}" for suffix in suffixes)
    return next(path for path in names if not path.exists())


def _link(link: Path, target: Path) -> None:
    fresh = link.with_name(f".{link.name}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target.name)
    os.replace(fresh, link)
    sync_to_disk(link.parent)
