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


def register() -> None:
    """Make vLLM use :class:`~populora.rollouts.punica.GroupedPunicaWrapper` where it runs on a CPU."""
    from vllm.platforms import current_platform

    if current_platform.is_cpu():
        wrapper = "populora.rollouts.punica.GroupedPunicaWrapper"
        type(current_platform).get_punica_wrapper = classmethod(lambda cls: wrapper)


@dataclass(frozen=True)
class Grouping:
    """Tokens of one batch arranged in tiles: equally many rows each, all of one adapter."""

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

    def transposed(self, stack: Tensor) -> Tensor:
        """Return the tiles' matrices (tiles, n, m), from those of all slots (slots, 1, m, n)."""
        if self.first is None:
            return stack.index_select(0, self.slots).squeeze(1).mT
        return stack.narrow(0, self.first, len(self.slots)).squeeze(1).mT


def group(slots: Tensor) -> Grouping | None:
    """Arrange tokens by adapter; None when no token has one.

    Where groups are about equal a tile is a group; else tiles are lower and large groups have several.

    Args:
        slots: (tokens,) slot of each token's adapter, −1 for none.
    """
    order = slots.argsort(stable=True)
    used, counts = torch.unique(slots, return_counts=True)
    bare = None
    if used[0] < 0:
        bare, order = order[: counts[0]], order[counts[0] :]
        used, counts = used[1:], counts[1:]
    if not len(used):
        return None
    height = _tile_height(counts)
    tiles = (counts + height - 1) // height
    padding = (tiles * height - counts).cumsum(0).roll(1)
    padding[0] = 0
    position = torch.arange(len(order)) + padding.repeat_interleave(counts)
    rows = torch.zeros(int(tiles.sum()) * height, dtype=torch.long)
    rows[position] = order
    places = torch.zeros(len(slots), dtype=torch.long)
    places[order] = position
    tile_slots = used.repeat_interleave(tiles)
    first, last = int(tile_slots[0]), int(tile_slots[-1])
    neighbours = len(tile_slots) == len(used) == last - first + 1
    return Grouping(tile_slots, first if neighbours else None, rows, places, bare)


def _tile_height(counts: Tensor) -> int:
    largest, total = int(counts.max()), int(counts.sum())
    if largest * len(counts) <= _WASTE * total:
        return largest
    return min(largest, max(_LOWEST_TILE, total // (2 * len(counts))))


def add_lora(
    y: Tensor, x: Tensor, a_slots: Sequence[Tensor], b_slots: Sequence[Tensor], grouping: Grouping
) -> None:
    """Add each token's adapter to a layer's output, in place.

    Args:
        y: (tokens, sum of outs) output; the slices of a merged layer side by side.
        x: (tokens, in) input.
        a_slots: For each slice (slots, 1, r, in).
        b_slots: For each slice (slots, 1, out, r), with the scale folded in.
        grouping: Of these tokens.
    """
    tiled = x.index_select(0, grouping.rows).view(len(grouping.slots), -1, x.shape[-1])
    start = 0
    for a, b in zip(a_slots, b_slots, strict=True):
        update = tiled.bmm(grouping.transposed(a)).bmm(grouping.transposed(b)).flatten(0, 1)
        update = update.index_select(0, grouping.places)
        if grouping.bare is not None:
            update.index_fill_(0, grouping.bare, 0.0)
        y.narrow(1, start, update.shape[1]).add_(update)
        start += update.shape[1]
