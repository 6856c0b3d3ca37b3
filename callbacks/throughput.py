"""Where the time goes."""

import time
from dataclasses import asdict
from typing import Any

import lightning as L
from typing_extensions import override

from populora.callbacks.run import module_of
from populora.callbacks.tensorboard import log_scalars
from populora.records import RolloutBatch, Timings, Update


class Throughput(L.Callback):
    """Logs the seconds of each stage, which add up to the iteration's wall clock, and tokens per second.

    An iteration lasts from the end of the one before to its own end, both at this callback. What no stage
    accounts for is ``rest``: evaluation, checkpoints, other callbacks, logging.
    """

    def __init__(self) -> None:
        self._began: float | None = None

    @override
    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self._began = None

    @override
    def on_train_epoch_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if self._began is None:
            self._began = time.perf_counter()

    @override
    def on_train_batch_end(
        self,
        trainer: L.Trainer,
        pl_module: L.LightningModule,
        outputs: Any,
        batch: RolloutBatch,
        batch_idx: int,
    ) -> None:
        began, self._began = self._began, time.perf_counter()
        update = module_of(trainer).last_update
        if began is not None and update is not None:
            log_scalars(trainer, _scalars(batch, update, self._began - began), batch.iteration + 1)


def stage_seconds(timings: Timings, training: float, wall: float) -> dict[str, float]:
    """Split ``wall`` seconds into stages; ``rest`` is what they leave."""
    stages = {**asdict(timings), "train": training}
    return {**stages, "rest": wall - sum(stages.values())}


def generated_per_second(batch: RolloutBatch) -> float:
    """Return tokens sampled per second of sampling."""
    return _rate(batch.generated_tokens, batch.timings.propose + batch.timings.solve)


def _scalars(batch: RolloutBatch, update: Update, wall: float) -> dict[str, float]:
    stages = stage_seconds(batch.timings, update.seconds, wall)
    return {
        **{f"seconds/{stage}": seconds for stage, seconds in stages.items()},
        "seconds/iteration": wall,
        "throughput/generated_tokens_per_second": generated_per_second(batch),
        "throughput/trained_tokens_per_second": _rate(update.tokens, update.seconds),
        "throughput/tokens_per_second": _rate(batch.generated_tokens, wall),
        "throughput/passed_share": update.passed_tokens / update.tokens if update.tokens else 0.0,
    }


def _rate(amount: int, seconds: float) -> float:
    return amount / seconds if seconds > 0 else 0.0
