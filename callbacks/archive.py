"""Coverage and complexity of the teachers' programs."""

from collections.abc import Sequence
from typing import Any

import lightning as L
from typing_extensions import override

from populora.callbacks.archive_figure import ArchivePoint, archive_figure
from populora.callbacks.problem_archive import ProblemArchive, make_centroids
from populora.callbacks.statistics import grouped_means
from populora.callbacks.tensorboard import log_figure, log_scalars
from populora.errors import ConfigError
from populora.records import Proposal, RolloutBatch
from populora.tasks.complexity import descriptors as known_descriptors


class Archive(L.Callback):
    """Files new problems in a CVT archive over the complexity of their programs, and logs coverage.

    The challenge of a problem, which the best of a cell are kept by, is 1 − solve rate, and 0 where nobody
    solved it. Induction problems do not count, since their programs were given to the teacher. Centroids are
    made once from the seed and stored with the run, so runs with equal arguments can be compared. The paper is
    silent on descriptors, cells and quality.

    Args:
        descriptors: Names of descriptors, or dotted paths to your own; the figure shows the first two.
        cells: Number of cells.
        seed: Of the centroids.
        figure_every: Iterations between two figures; one more comes at the end.

    Raises:
        ConfigError: an argument is out of bounds, or a descriptor is unknown.
    """

    def __init__(
        self,
        descriptors: Sequence[str] = ("ast_depth", "cyclomatic", "lines", "variables"),
        cells: int = 1024,
        seed: int = 0,
        figure_every: int = 10,
    ) -> None:
        if len(descriptors) < 2:
            raise ConfigError(f"Archive(descriptors={list(descriptors)}): expected at least 2")
        for name, value in (("cells", cells), ("figure_every", figure_every)):
            if value < 1:
                raise ConfigError(f"Archive({name}={value}): expected at least 1")
        self._axes = {name: known_descriptors[name] for name in descriptors}
        self._cells = cells
        self._seed = seed
        self._figure_every = figure_every
        self._archive: ProblemArchive | None = None
        self._history: list[ArchivePoint] = []

    @property
    def archive(self) -> ProblemArchive:
        """The archive; made when first asked for, unless a checkpoint brought it."""
        if self._archive is None:
            centroids = make_centroids(len(self._axes), self._cells, self._seed)
            self._archive = ProblemArchive(tuple(self._axes), centroids)
        return self._archive

    @override
    def on_train_batch_end(
        self,
        trainer: L.Trainer,
        pl_module: L.LightningModule,
        outputs: Any,
        batch: RolloutBatch,
        batch_idx: int,
    ) -> None:
        written = [p for p in batch.proposals if p.problem is not None and p.task != "induction"]
        self._file(written)
        self._log(trainer, written, batch.iteration + 1)

    @override
    def on_train_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if self._history and self._history[-1].iteration % self._figure_every != 0:
            self._draw(trainer, self._history[-1].iteration)

    @override
    def state_dict(self) -> dict[str, Any]:
        history = [[point.iteration, point.coverage, point.qd_score] for point in self._history]
        return {**self.archive.state_dict(), "history": history}

    @override
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._archive = ProblemArchive.from_state(state_dict, tuple(self._axes), self._cells)
        self._history = [ArchivePoint(*values) for values in state_dict["history"]]

    def _file(self, proposals: Sequence[Proposal]) -> None:
        rated = [(p.problem, 1 - p.solve_rate if p.solve_rate else 0.0) for p in proposals if p.problem]
        self.archive.add([problem for problem, _ in rated], [challenge for _, challenge in rated])

    def _log(self, trainer: L.Trainer, proposals: Sequence[Proposal], step: int) -> None:
        point = ArchivePoint(step, self.archive.coverage, self.archive.qd_score)
        self._history.append(point)
        scalars = {
            "archive/coverage": point.coverage,
            "archive/qd_score": point.qd_score,
            "archive/filled_cells": float(self.archive.filled),
            **self._complexity(proposals),
        }
        log_scalars(trainer, scalars, step)
        if step % self._figure_every == 0:
            self._draw(trainer, step)

    def _draw(self, trainer: L.Trainer, step: int) -> None:
        log_figure(trainer, "archive", archive_figure(self._history, self.archive), step)

    def _complexity(self, proposals: Sequence[Proposal]) -> dict[str, float]:
        """Mean of each descriptor, by teacher and pooled."""
        programs = [(p.member.name, p.problem.program) for p in proposals if p.problem is not None]
        means: dict[str, float] = {}
        for name, axis in self._axes.items():
            measured = ((author, axis(program)) for author, program in programs)
            means |= grouped_means(f"complexity/{name}", [(a, v) for a, v in measured if v is not None])
        return means
