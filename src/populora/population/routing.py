"""Which adapter each row of a batch goes through, inside the layers that PEFT has adapted."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from populora.errors import ConfigError


@dataclass(frozen=True)
class Segment:
    """Consecutive rows of a batch that share an adapter."""

    start: int
    stop: int
    adapter: str | None
    """None: the base alone."""


def segments_of(adapters: Sequence[str | None]) -> tuple[list[int], tuple[Segment, ...]]:
    """Group the rows of a batch by adapter.

    Returns:
        The order that makes rows of one adapter consecutive, stable within an adapter, and its segments.
    """
    rows: dict[str | None, list[int]] = {}
    for row, adapter in enumerate(adapters):
        rows.setdefault(adapter, []).append(row)
    segments: list[Segment] = []
    for adapter, members in rows.items():
        start = segments[-1].stop if segments else 0
        segments.append(Segment(start, start + len(members), adapter))
    return [row for members in rows.values() for row in members], tuple(segments)


class Router:
    """Forward hook that adds to a PEFT LoRA layer's base output the update of each row's adapter.

    PEFT's own routing (``adapter_names``) works in evaluation mode only, where gradient checkpointing is
    off. Here the layers run as the plain base (``disable_adapter_layers``) and the hook does the rest.

    Args:
        scaling: Factor α/r of every update.
    """

    def __init__(self, scaling: float) -> None:
        self._scaling = scaling
        self._segments: tuple[Segment, ...] = ()

    @contextmanager
    def through(self, segments: tuple[Segment, ...]) -> Iterator[None]:
        """Route every forward pass in this context through ``segments``."""
        previous, self._segments = self._segments, segments
        try:
            yield
        finally:
            self._segments = previous

    def checkpoint_contexts(self) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        """Return the contexts of a checkpointed layer's forward pass and of its recomputation.

        The recomputation happens in the backward pass, when other batches may have gone through the model;
        it must see the rows as they were routed first.
        """
        return nullcontext(), self.through(self._segments)

    def __call__(self, layer: Any, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        """Add B·A·x·α/r to each segment, in the factors' type as PEFT does; (rows, …, out).

        Raises:
            ConfigError: the layer does not see the batch row by row (experts, flattened tokens).
        """
        if not self._segments:
            return output
        if len(output) != self._segments[-1].stop:
            raise ConfigError(
                f"a linear module {layer.in_features} → {layer.out_features} sees {len(output)} rows of a batch "
                f"of {self._segments[-1].stop}; leave it out of model.adapter.target_modules"
            )
        sizes = [segment.stop - segment.start for segment in self._segments]
        parts = []
        for segment, part, x in zip(
            self._segments, torch.split(output, sizes), torch.split(inputs[0], sizes), strict=True
        ):
            if segment.adapter is not None:
                a, b = layer.lora_A[segment.adapter].weight, layer.lora_B[segment.adapter].weight
                part = (part + linear(linear(x.to(a.dtype), a), b) * self._scaling).to(output.dtype)
            parts.append(part)
        return parts[0] if len(parts) == 1 else torch.cat(parts)
