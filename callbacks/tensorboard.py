"""Scalars to every logger of the trainer; text and figures to those of TensorBoard."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lightning as L
from lightning.pytorch.loggers import TensorBoardLogger

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch.utils.tensorboard import SummaryWriter


def log_scalars(trainer: L.Trainer, scalars: Mapping[str, float], step: int) -> None:
    """Log values under ``quantity/member`` tags.

    Args:
        trainer: Only its first process logs.
        scalars: Tag to value.
        step: Completed iterations.
    """
    if trainer.is_global_zero and scalars:
        for logger in trainer.loggers:
            logger.log_metrics(dict(scalars), step)


def log_text(trainer: L.Trainer, tag: str, markdown: str, step: int) -> None:
    """Log Markdown; characters that UTF-8 cannot hold are escaped."""
    for writer in _writers(trainer):
        writer.add_text(tag, markdown.encode("utf-8", "backslashreplace").decode("utf-8"), step)


def log_figure(trainer: L.Trainer, tag: str, figure: "Figure", step: int) -> None:
    """Log a figure as an image at its own resolution."""
    for writer in _writers(trainer):
        writer.add_figure(tag, figure, step)


def forget_after(trainer: L.Trainer, step: int) -> None:
    """Have TensorBoard drop what was logged beyond ``step``, before a run goes on from there."""
    from tensorboard.compat.proto.event_pb2 import Event, SessionLog

    for writer in _writers(trainer):
        events: Any = writer.file_writer
        for fields in (
            {"file_version": "brain.Event:2"},
            {"session_log": SessionLog(status=SessionLog.START)},
        ):
            events.add_event(Event(step=step + 1, **fields))


def tensorboard_folders(trainer: L.Trainer) -> list[Path]:
    """Return where the TensorBoard loggers write."""
    return [Path(logger.log_dir) for logger in trainer.loggers if isinstance(logger, TensorBoardLogger)]


def _writers(trainer: L.Trainer) -> Iterator["SummaryWriter"]:
    if trainer.is_global_zero:
        for logger in trainer.loggers:
            if isinstance(logger, TensorBoardLogger):
                yield logger.experiment
