"""The look of every figure: readable sizes, units on the axes, legends outside, a colour-blind palette."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8C6D1F", "#7F7F7F")
"""Okabe and Ito's colours, the yellow darkened; told apart with any colour vision."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
INK = "#333333"
"""Text and axes."""
FAINT = "#D9D9D9"
"""Grids and what stands in the background."""
DPI = 150


def colour(index: int) -> str:
    """Return the colour of the ``index``-th series."""
    return PALETTE[index % len(PALETTE)]


def marker(index: int) -> str:
    """Return the marker of the ``index``-th series: it changes where colours repeat."""
    return MARKERS[(index + index // len(PALETTE)) % len(MARKERS)]


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure; width and height in inches."""
    return Figure(figsize=(width, height), dpi=DPI, layout="constrained", facecolor="white")


def dress(axes: "Axes", title: str, x: str, y: str) -> None:
    """Give axes a title, labels with units, a faint grid, and no frame."""
    axes.set_title(title, fontsize=11, color=INK, loc="left")
    axes.set_xlabel(x, fontsize=10, color=INK)
    axes.set_ylabel(y, fontsize=10, color=INK)
    axes.tick_params(labelsize=9, colors=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(INK)
    axes.grid(color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)


def whole_numbers(axes: "Axes") -> None:
    """Keep the ticks of the x axis, iterations, on round whole numbers."""
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, steps=[1, 2, 5, 10]))


def legend_outside(figure: Figure, handles: Sequence[Any], title: str | None = None) -> None:
    """Put one legend to the right of all axes."""
    figure.legend(
        handles=handles,
        loc="outside right upper",
        frameon=False,
        fontsize=9,
        title=title,
        title_fontsize=9,
        alignment="left",
        labelcolor=INK,
    )
