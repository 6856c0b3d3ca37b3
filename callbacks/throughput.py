"""Where the time goes."""

import logging
import time
from collections import Counter
from dataclasses import asdict
from typing import Any

import lightning as L
from lightning.pytorch.profilers import PassThroughProfiler
from typing_extensions import override

from populora.callbacks.callback_clock import CallbackClock
from populora.callbacks.run import module_of
from populora.callbacks.tensorboard import log_scalars
from populora.records import RolloutBatch, Update

logger = logging.getLogger(__name__)


class Throughput(L.Callback):
    """Logs the seconds of each stage, which add up to the iteration's wall clock, and tokens per second.

    An iteration lasts from the end of the one before to its own end, both at this callback. ``verify`` is what
    verification takes beyond generation, during which most of it happens. What no stage accounts for is ``rest``:
    reading and writing prompts, Lightning's loop; callbacks and checkpoints too under a profiler of the user's own.
    The end of a run shows the shares of all iterations.
    """

    def __init__(self) -> None:
        self._began: float | None = None
        self._clock = CallbackClock()
        self._total: Counter[str] = Counter()

    @override
    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self._began = None
        self._total.clear()
        profiled: Any = trainer
        if isinstance(profiled.profiler, PassThroughProfiler):
            profiled.profiler = self._clock
        self._clock.checkpointing = frozenset(c.state_key for c in trainer.checkpoint_callbacks)

    @override
    def on_train_epoch_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if self._began is None:
            self._clock.take()
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
        callbacks, checkpoint = self._clock.take()
        began, self._began = self._began, time.perf_counter()
        update = module_of(trainer).last_update
        if began is not None and update is not None:
            stages = {**stage_seconds(batch, update), "callbacks": callbacks, "checkpoint": checkpoint}
            wall = self._began - began
            stages["rest"] = wall - sum(stages.values())
            self._total.update(stages)
            log_scalars(trainer, _scalars(batch, update, stages, wall), batch.iteration + 1)

    @override
    def on_train_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        wall = sum(self._total.values())
        if wall > 0:
            shares = (f"{stage} {seconds / wall:.1%}" for stage, seconds in self._total.most_common())
            logger.info("Of %.0f s of iterations: %s", wall, ", ".join(shares))


def stage_seconds(batch: RolloutBatch, update: Update) -> dict[str, float]:
    """Return the seconds of an iteration's own stages."""
    timings = batch.timings
    return {
        "sync": timings.sync,
        "generate": timings.propose + timings.solve,
        "verify": timings.validate + timings.grade,
        **asdict(update.timings),
    }


def generated_per_second(batch: RolloutBatch) -> float:
    """Return tokens sampled per second of sampling."""
    return _rate(batch.generated_tokens, batch.timings.propose + batch.timings.solve)


def _scalars(batch: RolloutBatch, update: Update, stages: dict[str, float], wall: float) -> dict[str, float]:
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
