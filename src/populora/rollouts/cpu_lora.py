"""LoRA for mixed batches on vLLM's CPU backend: right and fast.

vLLM 0.32 numbers "no adapter" −1 and indexes the stacked adapters with it, so a request for the base in a batch
with others gets the last slot's adapter (vLLM #48421, #49656); and it copies the adapter's matrices once for each
token. Here tokens are grouped by adapter once a step, and each layer does one batched product over the groups.

Loaded by vLLM in all its processes (entry point ``vllm.general_plugins``); changes nothing off a CPU.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

_WASTE = 1.5
_LOWEST_TILE = 16
_LOWEST_RUN = 64


def register() -> None:
    """Make vLLM use :class:`~populora.rollouts.punica.GroupedPunicaWrapper` where it runs on a CPU."""
    from vllm.platforms import current_platform

    if current_platform.is_cpu():
        wrapper = "populora.rollouts.punica.GroupedPunicaWrapper"
        type(current_platform).get_punica_wrapper = classmethod(lambda cls: wrapper)


@dataclass(frozen=True)
class Run:
    """Neighbouring tokens of one adapter."""

    slot: int
    start: int
    stop: int


@dataclass(frozen=True)
class Tiles:
    """Tokens arranged in tiles: equally many rows each, all of one adapter."""

    slots: Tensor
    """(tiles,) adapter of each tile."""
    first: int | None
    """First slot, where each of a row of neighbours has one tile; then no matrix needs copying."""
    rows: Tensor
    """(tiles · height,) token of each row; rows that fill up a tile repeat some token."""
    places: Tensor
    """(tokens,) row of each token; any for tokens without adapter."""
    bare: Tensor | None
    """Tokens without adapter; None when all have one."""

    def of_tiles(self, matrices: Tensor) -> Tensor:
        """Return the matrices (tiles, n, m) of the tiles, from those of all slots (slots, n, m)."""
        if self.first is None:
            return matrices.index_select(0, self.slots)
        return matrices.narrow(0, self.first, len(self.slots))


Grouping = Tiles | tuple[Run, ...]
"""How the tokens of a batch are shared out to adapters."""


def group(slots: Tensor) -> Grouping:
    """Arrange tokens by adapter: long runs stay where they are, as in a step over prompts; the rest goes into tiles.

    Where groups are about equal a tile is a group; else tiles are lower and large groups have several.

    Args:
        slots: (tokens,) slot of each token's adapter, −1 for none.
    """
    used, counts = torch.unique(slots, return_counts=True)
    runs, lengths = torch.unique_consecutive(slots, return_counts=True)
    if len(slots) >= _LOWEST_RUN * len(runs) or int(used[-1]) < 0:
        stops = lengths.cumsum(0)
        bounds = zip(runs.tolist(), (stops - lengths).tolist(), stops.tolist(), strict=True)
        return tuple(Run(*run) for run in bounds if run[0] >= 0)
    order, bare = slots.argsort(stable=True), None
    if used[0] < 0:
        bare, order = order[: counts[0]], order[counts[0] :]
        used, counts = used[1:], counts[1:]
    return _tiles(len(slots), order, bare, used, counts)


def _tiles(tokens: int, order: Tensor, bare: Tensor | None, used: Tensor, counts: Tensor) -> Tiles:
    height = _tile_height(counts)
    tiles = (counts + height - 1) // height
    padding = (tiles * height - counts).cumsum(0).roll(1)
    padding[0] = 0
    position = torch.arange(len(order)) + padding.repeat_interleave(counts)
    rows = torch.zeros(int(tiles.sum()) * height, dtype=torch.long)
    rows[position] = order
    places = torch.zeros(tokens, dtype=torch.long)
    places[order] = position
    slots = used.repeat_interleave(tiles)
    first, last = int(slots[0]), int(slots[-1])
    neighbours = len(slots) == len(used) == last - first + 1
    return Tiles(slots, first if neighbours else None, rows, places, bare)


def _tile_height(counts: Tensor) -> int:
    largest, total = int(counts.max()), int(counts.sum())
    if largest * len(counts) <= _WASTE * total:
        return largest
    return min(largest, max(_LOWEST_TILE, total // (2 * len(counts))))


@dataclass(frozen=True)
class Factors:
    """The adapters of one layer, transposed; views of the tensors that vLLM loads adapters into."""

    a: Tensor
    """(slots, in, slices · r): the slices of a merged layer side by side."""
    b: tuple[Tensor, ...]
    """For each slice (slots, r, out), with the scale folded in."""


@torch.inference_mode(False)
def arrange(a_slots: Sequence[Tensor], b_slots: Sequence[Tensor]) -> Factors:
    """Move a layer's stacked factors in memory so that their transposes are contiguous, and return those.

    The given tensors keep their shapes and values, and what is written to them later shows in the result. May be
    called within inference mode, which would else make them read-only.

    Args:
        a_slots: For each slice (slots, 1, r, in).
        b_slots: For each slice (slots, 1, out, r).
    """
    merged = torch.cat([a.squeeze(1) for a in a_slots], 1).mT.contiguous()
    for a, part in zip(a_slots, merged.chunk(len(a_slots), 2), strict=True):
        a.data = part.mT.unsqueeze(1)
    transposed = tuple(b.squeeze(1).mT.contiguous() for b in b_slots)
    for b, part in zip(b_slots, transposed, strict=True):
        b.data = part.mT.unsqueeze(1)
    return Factors(merged, transposed)


def add_lora(y: Tensor, x: Tensor, factors: Factors, grouping: Grouping) -> None:
    """Add each token's adapter to a layer's output, in place.

    Args:
        y: (tokens, sum of outs) output; the slices of a merged layer side by side.
        x: (tokens, in) input.
        factors: The layer's adapters.
        grouping: Of these tokens.
    """
    if isinstance(grouping, Tiles):
        _add_tiles(y, x, factors, grouping)
        return
    for run in grouping:
        hidden = x[run.start : run.stop] @ factors.a[run.slot]
        start = 0
        for b, part in zip(factors.b, hidden.chunk(len(factors.b), 1), strict=True):
            y[run.start : run.stop].narrow(1, start, b.shape[2]).addmm_(part, b[run.slot])
            start += b.shape[2]


def _add_tiles(y: Tensor, x: Tensor, factors: Factors, tiles: Tiles) -> None:
    tiled = x.index_select(0, tiles.rows).view(len(tiles.slots), -1, x.shape[1])
    hidden = tiled.bmm(tiles.of_tiles(factors.a))
    start = 0
    for b, part in zip(factors.b, hidden.chunk(len(factors.b), 2), strict=True):
        update = part.bmm(tiles.of_tiles(b)).flatten(0, 1).index_select(0, tiles.places)
        if tiles.bare is not None:
            update.index_fill_(0, tiles.bare, 0.0)
        y.narrow(1, start, b.shape[2]).add_(update)
        start += b.shape[2]
