"""What a run is doing right now."""

import logging
import time
from collections.abc import Sequence
from datetime import timedelta
from statistics import fmean
from typing import Any

import lightning as L
import rich
from lightning.pytorch.callbacks import ProgressBar
from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text
from typing_extensions import override

from populora.callbacks.run import data_of, log_folder, module_of
from populora.callbacks.throughput import generated_per_second
from populora.records import RolloutBatch

logger = logging.getLogger(__name__)


class RunProgress(ProgressBar):
    """Shows iterations, the stage within the iteration, and how the last one went.

    On a terminal two bars and a line, elsewhere one log line an iteration. Takes the place of Lightning's
    progress bar.
    """

    def __init__(self) -> None:
        super().__init__()
        self._enabled = True
        self._live: Live | None = None
        self._bars = Progress(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[detail]}", style="dim")
        )
        self._run = self._bars.add_task("iteration", detail="")
        self._stage = self._bars.add_task("starting", total=None, detail="")
        self._last = Text("")
        self._began = 0.0
        self._first = 0

    @override
    def enable(self) -> None:
        self._enabled = True

    @override
    def disable(self) -> None:
        self._enabled = False

    @override
    def setup(self, trainer: L.Trainer, pl_module: L.LightningModule, stage: str) -> None:
        super().setup(trainer, pl_module, stage)
        data_of(trainer).stage_listener = self._show_stage

    @override
    def on_fit_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if not self._enabled:
            return
        folder = log_folder(trainer)
        logger.info("All of the run goes to %s; watch it with: tensorboard --logdir %s", folder, folder)
        if rich.get_console().is_terminal:
            self._live = Live(Group(self._bars, self._last), console=rich.get_console(), refresh_per_second=4)
            self._live.start()

    @override
    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self._began, self._first = time.monotonic(), module_of(trainer).iteration
        self._show_run(self._first, data_of(trainer).iterations)

    @override
    def on_train_batch_start(
        self, trainer: L.Trainer, pl_module: L.LightningModule, batch: RolloutBatch, batch_idx: int
    ) -> None:
        self._show_stage("train", 0, 1)

    @override
    def on_train_batch_end(
        self,
        trainer: L.Trainer,
        pl_module: L.LightningModule,
        outputs: Any,
        batch: RolloutBatch,
        batch_idx: int,
    ) -> None:
        self._show_batch(batch, data_of(trainer).iterations)

    @override
    def on_exception(
        self, trainer: L.Trainer, pl_module: L.LightningModule, exception: BaseException
    ) -> None:
        self._stop()

    @override
    def teardown(self, trainer: L.Trainer, pl_module: L.LightningModule, stage: str) -> None:
        data_of(trainer).stage_listener = None
        self._stop()

    def _show_stage(self, stage: str, done: int, total: int) -> None:
        self._bars.update(
            self._stage, description=stage, completed=done, total=total, detail=f"{done:,} / {total:,}"
        )

    def _show_run(self, done: int, total: int) -> None:
        played = done - self._first
        seconds = (time.monotonic() - self._began) / played if played else 0.0
        left = f"about {timedelta(seconds=round(seconds * (total - done)))} left" if played else ""
        self._bars.update(
            self._run, description=f"iteration {done} / {total}", completed=done, total=total, detail=left
        )

    def _show_batch(self, batch: RolloutBatch, total: int) -> None:
        if not self._enabled:
            return
        self._show_run(batch.iteration + 1, total)
        self._last.plain = describe(batch)
        if self._live is None:
            left = self._bars.tasks[self._run].fields["detail"]
            logger.info("Iteration %d / %d: %s, %s", batch.iteration + 1, total, self._last.plain, left)

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


def describe(batch: RolloutBatch) -> str:
    """Return how an iteration went, in one line."""
    solved = [a.verdict.correct for a in batch.attempts if not a.from_buffer]
    valid = [p.problem is not None for p in batch.proposals]
    teachers, students = [p.reward for p in batch.proposals], [a.reward for a in batch.attempts]
    return (
        f"solved {_mean(solved, '.0%')}, valid {_mean(valid, '.0%')}, "
        f"reward teachers {_mean(teachers, '+.2f')} students {_mean(students, '+.2f')}, "
        f"{generated_per_second(batch):,.0f} tokens/s"
    )


def _mean(values: Sequence[float], form: str) -> str:
    return format(fmean(values), form) if values else "–"
