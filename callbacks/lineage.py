"""The lineage of a population, in words and as a figure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch
from matplotlib.patheffects import withStroke

from populora.callbacks.figures import (
    FAINT,
    INK,
    colour,
    dress,
    legend_outside,
    marker,
    new_figure,
    whole_numbers,
)
from populora.population.members import LineageRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LINE_COLOUR = "#9AA5B1"


def describe(record: LineageRecord) -> str:
    """Return one line such as ``teacher-2 (generation 3) is dare(rate=0.7) of teacher-0 and teacher-1``."""
    strengths = ", ".join(f"{name}={value:.3g}" for name, value in record.parameters)
    parents = " and ".join(record.parents)
    return f"{record.slot} (generation {record.generation}) is {record.operator}({strengths}) of {parents}"


def lineage_table(lineage: Sequence[LineageRecord]) -> str:
    """Return all births as a Markdown table, newest first."""
    rows = [
        f"| {r.iteration + 1} | {r.slot} | {r.generation} | {r.operator} | "
        f"{', '.join(f'{name} {value:.3g}' for name, value in r.parameters)} | {', '.join(r.parents)} | {r.seed} |"
        for r in reversed(lineage)
    ]
    head = "| after iteration | member | generation | operator | strengths | parents | seed |"
    return "\n".join([head, "|---|---|---|---|---|---|---|", *rows])


def lineage_figure(slots: Sequence[str], lineage: Sequence[LineageRecord], now: int) -> "Figure":
    """Draw slots over time, with a marker for each birth and an edge from each parent.

    Args:
        slots: Names of the members, from top to bottom.
        lineage: Births, oldest first.
        now: Completed iterations, where time ends.
    """
    figure = new_figure(9.5, 1.6 + 0.42 * len(slots))
    axes = figure.subplots()
    dress(axes, "Lineage: births and their parents", "completed iterations", "")
    rows = {name: row for row, name in enumerate(slots)}
    operators = sorted({record.operator for record in lineage})
    for row in rows.values():
        axes.hlines(row, 0, now, color=_LINE_COLOUR, linewidth=3, alpha=0.55, zorder=1)
    for record in lineage:
        _draw_birth(axes, record, rows, operators.index(record.operator), now)
    axes.set_yticks(range(len(slots)), slots)
    axes.set_ylim(len(slots) - 0.4, -0.7)
    axes.set_xlim(-0.02 * now, now * 1.03)
    axes.grid(visible=False, axis="y")
    whole_numbers(axes)
    legend_outside(figure, [_handle(name, i) for i, name in enumerate(operators)], "operator (g: generation)")
    return figure


def _draw_birth(axes: "Axes", record: LineageRecord, rows: dict[str, int], operator: int, now: int) -> None:
    """Mark a child at the time it was bred; edges start a little earlier on its parents' lines."""
    time, row = record.iteration + 1, rows[record.slot]
    for order, parent in enumerate(record.parents):
        axes.add_patch(
            FancyArrowPatch(
                (time - 0.03 * now, rows[parent]),
                (time, row),
                arrowstyle="-",
                connectionstyle=f"arc3,rad={0.06 + 0.12 * order}",
                color=colour(operator),
                linewidth=1.2,
                alpha=0.75,
                zorder=2,
            )
        )
        axes.plot(time - 0.03 * now, rows[parent], ".", color=colour(operator), markersize=4, zorder=3)
    axes.plot(
        time, row, marker(operator), color=colour(operator), markersize=8, markeredgecolor="white", zorder=4
    )
    axes.annotate(
        f"g{record.generation}",
        (time, row),
        xytext=(5, 4),
        textcoords="offset points",
        fontsize=8,
        color=INK,
        path_effects=[withStroke(linewidth=2, foreground="white")],
        zorder=5,
    )


def _handle(operator: str, index: int) -> Line2D:
    return Line2D(
        [], [], color=colour(index), marker=marker(index), markersize=7, linewidth=1.2, markeredgecolor=FAINT,
        label=operator,
    )  # fmt: skip
