"""Ctrl-C and SIGTERM end a run after the current iteration, with a checkpoint."""

import logging
import signal
from types import FrameType

import lightning as L
from typing_extensions import override

logger = logging.getLogger(__name__)

_REQUEUE = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP)
"""Signals that a cluster announces its time limit with; Lightning's SLURM environment takes one of them."""


class GracefulStop(L.Callback):
    """Finishes the iteration on the first signal, stops at once on the second.

    After the first SIGINT (Ctrl-C) or SIGTERM, :class:`~populora.callbacks.RunCheckpoint` saves after this
    iteration and the run ends as it would have ended by itself. After the second, it saves the iterations that are
    complete; only within a gradient step the last checkpoint is what remains.

    Where Lightning requeues the job (SLURM with ``--signal=USR1@SECONDS``), its handler would save in the middle of
    an iteration: it is put off to the iteration's end, so SECONDS must be more than an iteration takes.
    """

    def __init__(self) -> None:
        self._former: dict[signal.Signals, signal._HANDLER] = {}
        self._put_off: list[signal.Signals] = []
        self._trainer: L.Trainer | None = None

    @override
    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self._trainer = trainer
        for number in (signal.SIGINT, signal.SIGTERM):
            self._former[number] = signal.signal(number, self._stop)
        for number in _REQUEUE:
            if callable(signal.getsignal(number)):
                self._former[number] = signal.signal(number, self._requeue)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self._trainer is None or self._trainer.should_stop:
            self._restore()
            raise KeyboardInterrupt
        self._trainer.should_stop = True
        logger.warning(
            "%s: finishing this iteration, then saving. Once more saves what is complete and stops at once.",
            signal.Signals(number).name,
        )

    def _requeue(self, number: int, frame: FrameType | None) -> None:
        if self._trainer is not None:
            self._trainer.should_stop = True
        self._put_off.append(signal.Signals(number))
        logger.warning(
            "%s: finishing this iteration, then saving and requeueing.", signal.Signals(number).name
        )

    def _restore(self) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)
        self._former = {}

    @override
    def on_train_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        while self._put_off:
            number = self._put_off.pop()
            handler = self._former[number]
            if callable(handler):
                handler(number, None)

    @override
    def teardown(self, trainer: L.Trainer, pl_module: L.LightningModule, stage: str) -> None:
        self._restore()

    @override
    def on_exception(
        self, trainer: L.Trainer, pl_module: L.LightningModule, exception: BaseException
    ) -> None:
        self._restore()
