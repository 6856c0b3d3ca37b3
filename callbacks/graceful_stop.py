"""Ctrl-C and SIGTERM end a run after the current iteration, with a checkpoint."""

import logging
import signal
from types import FrameType

import lightning as L
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from typing_extensions import override

logger = logging.getLogger(__name__)


class GracefulStop(L.Callback):
    """Finishes the iteration on the first signal, stops at once on the second.

    After the first, the run ends as it would have ended by itself: the checkpoint callback saves, the summary
    says where. After the second, the last completed checkpoint is what remains. Under SLURM with requeueing,
    SIGTERM is left to Lightning.
    """

    def __init__(self) -> None:
        self._former: dict[int, signal.Handlers] = {}
        self._trainer: L.Trainer | None = None

    @override
    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self._trainer = trainer
        signals = [signal.SIGINT]
        if not SLURMEnvironment.detect():
            signals.append(signal.SIGTERM)
        self._former = {number: signal.signal(number, self._stop) for number in signals}  # type: ignore[misc]

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self._trainer is None or self._trainer.should_stop:
            self._restore()
            raise KeyboardInterrupt
        self._trainer.should_stop = True
        logger.warning(
            "%s: finishing this iteration, then saving. Once more stops at once and keeps the last checkpoint.",
            signal.Signals(number).name,
        )

    def _restore(self) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)
        self._former = {}

    @override
    def on_train_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self._restore()

    @override
    def teardown(self, trainer: L.Trainer, pl_module: L.LightningModule, stage: str) -> None:
        self._restore()
