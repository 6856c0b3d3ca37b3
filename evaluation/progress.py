"""Shows how far an evaluation is."""

import logging
import time
from typing import Self

import rich
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

logger = logging.getLogger(__name__)

_LOG_SECONDS = 30.0
"""Between two lines where there is no terminal."""


class EvaluationProgress:
    """A bar for each suite on a terminal, else a log line now and then; a listener of an evaluator."""

    def __init__(self) -> None:
        self._live = rich.get_console().is_terminal
        self._bars = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            console=rich.get_console(), disable=not self._live,
        )  # fmt: skip
        self._tasks: dict[str, TaskID] = {}
        self._logged = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show that so much of a stage is done."""
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage, total=total)
        self._bars.update(self._tasks[stage], completed=done, total=total)
        if not self._live and (done == total or time.monotonic() - self._logged > _LOG_SECONDS):
            self._logged = time.monotonic()
            logger.info("%s: %d / %d", stage, done, total)

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()
