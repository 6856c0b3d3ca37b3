"""Coverage over time, and where in descriptor space the problems are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from populora.callbacks.figures import FAINT, INK, PALETTE, dress, new_figure, whole_numbers
from populora.callbacks.problem_archive import ProblemArchive
from populora.tasks.complexity import descriptors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_BINS = 20


@dataclass(frozen=True)
class ArchivePoint:
    """State of the archive after some iterations."""

    iteration: int
    """Completed iterations."""
    coverage: float
    """Share of filled cells, in [0, 1]."""
    qd_score: float
    """Sum of challenges over the cells."""


def archive_figure(history: Sequence[ArchivePoint], archive: ProblemArchive) -> "Figure":
    """Draw coverage and QD score over time, and the archive over its first two descriptors."""
    figure = new_figure(13, 4.2)
    curve, filled, hardest = figure.subplots(1, 3, width_ratios=[1.1, 1, 1])
    _draw_curve(curve, history)
    counts, challenges = _project(archive)
    _draw_map(filled, archive, counts, f"Filled cells ({archive.filled} of {len(archive.centroids)})", None)
    _draw_map(hardest, archive, challenges, "Greatest challenge (1 − solve rate, 0 if unsolved)", 1.0)
    return figure


def _draw_curve(axes: "Axes", history: Sequence[ArchivePoint]) -> None:
    times = [point.iteration for point in history]
    dress(axes, "Coverage and quality", "completed iterations", "")
    whole_numbers(axes)
    axes.plot(times, [100 * point.coverage for point in history], color=PALETTE[0], linewidth=2)
    axes.set_ylabel("coverage (% of cells)", color=PALETTE[0])
    axes.set_ylim(bottom=0)
    right = axes.twinx()
    right.plot(times, [point.qd_score for point in history], color=PALETTE[3], linewidth=2, linestyle="--")
    right.set_ylabel("QD score (sum of 1 − solve rate)", color=PALETTE[3], fontsize=10)
    right.set_ylim(bottom=0)
    right.tick_params(labelsize=9, colors=INK)
    right.spines[["top", "left"]].set_visible(False)


def _project(archive: ProblemArchive) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return filled cells and the greatest challenge by bin of the first two descriptors; NaN where empty."""
    edges = [_edges(name) for name in archive.names[:2]]
    shape = tuple(len(bounds) - 1 for bounds in edges)
    counts, challenges = np.zeros(shape), np.full(shape, np.nan)
    for elite in archive.elites:
        place = tuple(
            min(int(np.searchsorted(bounds, value, side="right")) - 1, len(bounds) - 2)
            for bounds, value in zip(edges, elite.descriptors, strict=False)
        )
        counts[place] += 1
        challenges[place] = np.fmax(challenges[place], elite.challenge)
    counts[counts == 0] = np.nan
    return counts, challenges


def _edges(name: str) -> NDArray[np.float64]:
    """Return bounds of bins one unit wide, centred on whole numbers, or wider ones for long ranges."""
    low, high = descriptors[name].low, descriptors[name].high
    bins = min(_MOST_BINS, round(high - low) + 1)
    return np.linspace(low - 0.5, high + 0.5, bins + 1)


def _draw_map(
    axes: "Axes", archive: ProblemArchive, values: NDArray[np.float64], title: str, top: float | None
) -> None:
    x, y = archive.names[:2]
    dress(axes, title, _axis_label(x), _axis_label(y))
    axes.set_facecolor("#F4F4F4")
    axes.grid(visible=False)
    mesh = axes.pcolormesh(
        _edges(x), _edges(y), values.T, cmap="viridis", vmin=0, vmax=top, edgecolors="white", linewidth=0.4
    )
    bar = axes.figure.colorbar(mesh, ax=axes, shrink=0.9, pad=0.02, ticks=MaxNLocator(5, integer=top is None))
    bar.outline.set_edgecolor(FAINT)
    bar.ax.tick_params(labelsize=9, colors=INK)


def _axis_label(name: str) -> str:
    return name.replace("_", " ")
