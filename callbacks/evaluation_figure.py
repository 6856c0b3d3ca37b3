"""Held-out scores over time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from populora.callbacks.figures import INK, colour, dress, legend_outside, marker, new_figure, whole_numbers
from populora.callbacks.held_out import Scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_LEAST_TOP = 10.0
"""Least percentage that the axis reaches, so that scores near zero do not look large."""


def evaluation_figure(scores: Sequence[Scores]) -> "Figure":
    """Draw a panel for each task, with a curve for each member, their mean, and the base as a dashed line."""
    tasks = list(scores[0].by_task)
    figure = new_figure(1.8 + 3.4 * len(tasks), 3.6)
    panels = figure.subplots(1, len(tasks), sharey=True, squeeze=False)[0]
    for axes, task in zip(panels, tasks, strict=True):
        handles = _draw_panel(axes, scores, task)
    panels[0].set_ylabel("correct answers (%)")
    panels[0].set_ylim(0, max(_LEAST_TOP, panels[0].get_ylim()[1]))
    legend_outside(figure, handles)
    return figure


def _draw_panel(axes: "Axes", scores: Sequence[Scores], task: str) -> list["Line2D"]:
    dress(axes, task, "completed iterations", "")
    whole_numbers(axes)
    names = sorted({s.member for s in scores if s.member is not None})
    base = [100 * s.by_task[task] for s in scores if s.member is None]
    curves = {
        name: {s.iteration: 100 * s.by_task[task] for s in scores if s.member == name} for name in names
    }
    handles = [
        axes.plot(
            list(curve), list(curve.values()), color=colour(i), marker=marker(i), markersize=4, linewidth=1.2,
            alpha=0.8, label=name,
        )[0]
        for i, (name, curve) in enumerate(curves.items())
    ]  # fmt: skip
    if len(curves) > 1:
        times = sorted(set.intersection(*(set(curve) for curve in curves.values())))
        means = [np.mean([curve[time] for curve in curves.values()]) for time in times]
        handles += axes.plot(times, means, color=INK, linewidth=2.4, label="mean")
    if base:
        handles.append(axes.axhline(base[0], color=INK, linewidth=1.4, linestyle="--", label="base"))
    return handles
