"""Checkpoints every so many iterations, at the end, and on request."""

from pathlib import Path

import lightning as L
from lightning.pytorch.callbacks import ModelCheckpoint
from typing_extensions import override

from populora.errors import ConfigError


class RunCheckpoint(ModelCheckpoint):
    """Lightning's checkpoint callback with what a co-evolution run wants of it.

    Keeps the newest ``keep`` checkpoints in ``<default_root_dir>/checkpoints`` and a link ``last.ckpt`` to the
    newest, which ``--ckpt_path last`` resumes from. Also saves when training ends or is stopped.

    Args:
        every: Iterations between two checkpoints.
        keep: How many to keep.
        folder: Another place for them.

    Raises:
        ConfigError: ``every`` or ``keep`` is below 1.
    """

    def __init__(self, every: int = 5, keep: int = 2, folder: str | None = None) -> None:
        for name, value in (("every", every), ("keep", keep)):
            if value < 1:
                raise ConfigError(f"RunCheckpoint({name}=…) must be at least 1, got {value}")
        super().__init__(
            dirpath=folder,
            filename="iteration-{step:05.0f}",
            auto_insert_metric_name=False,
            monitor="step",
            mode="max",
            save_top_k=keep,
            save_last="link",
            every_n_train_steps=every,
            save_on_train_epoch_end=False,
            enable_version_counter=False,
        )

    @override
    def setup(self, trainer: L.Trainer, pl_module: L.LightningModule, stage: str) -> None:
        if self.dirpath is None:
            self.dirpath = str(Path(trainer.default_root_dir).absolute() / "checkpoints")
        super().setup(trainer, pl_module, stage)

    @override
    def on_train_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if trainer.global_step != self._last_global_step_saved:
            self._save_topk_checkpoint(trainer, self._monitor_candidates(trainer))
            self._save_last_checkpoint(trainer, self._monitor_candidates(trainer))
