"""The course of a run in numbers."""

from typing import Any

import lightning as L
from typing_extensions import override

from populora.callbacks.run import module_of
from populora.callbacks.statistics import attempt_scalars, failure_counts, proposal_scalars, update_scalars
from populora.callbacks.tensorboard import log_scalars
from populora.records import RolloutBatch


class PopulationStatistics(L.Callback):
    """Logs, for each member and pooled, how proposing, solving and learning go.

    Rates of valid, distinct, solved and truncated responses, rewards, lengths, failures by kind, and what the
    gradient step reports: entropy, engine/trainer mismatch, gradient norm, share of flat groups, KL.
    """

    def __init__(self) -> None:
        self._failures: set[str] = set()

    @override
    def on_train_batch_end(
        self,
        trainer: L.Trainer,
        pl_module: L.LightningModule,
        outputs: Any,
        batch: RolloutBatch,
        batch_idx: int,
    ) -> None:
        log_scalars(trainer, self._scalars(trainer, batch), batch.iteration + 1)

    def _scalars(self, trainer: L.Trainer, batch: RolloutBatch) -> dict[str, float]:
        """Collect all values; a kind of failure once seen counts 0 where it does not occur."""
        update = module_of(trainer).last_update
        counts = failure_counts(batch)
        self._failures |= counts.keys()
        return {
            **proposal_scalars(batch),
            **attempt_scalars(batch),
            **{tag: float(counts[tag]) for tag in sorted(self._failures)},
            **({} if update is None else update_scalars(update)),
        }
