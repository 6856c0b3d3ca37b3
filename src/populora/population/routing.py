"""Which adapter each token of a batch goes through, inside the layers that PEFT has adapted."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

from populora.errors import ConfigError
from populora.population.layout import Segment


class Router:
    """Forward hook that adds to a PEFT LoRA layer's base output the update of each token's adapter.

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
        it must see the tokens as they were routed first.
        """
        return nullcontext(), self.through(self._segments)

    def __call__(self, layer: Any, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        """Add B·A·x·α/r to each segment, in the factors' type as PEFT does; (…, tokens, out), in place.

        Raises:
            ConfigError: the layer does not see the batch token by token (experts).
        """
        if not self._segments:
            return output
        (x,) = inputs
        tokens = x.numel() // x.shape[-1]
        if tokens != self._segments[-1].stop:
            raise ConfigError(
                f"a linear module {layer.in_features} → {layer.out_features} sees {tokens} tokens of a batch of "
                f"{self._segments[-1].stop}; leave it out of model.adapter.target_modules"
            )
        adapted = [segment for segment in self._segments if segment.adapter is not None]
        factors = [side[s.adapter].weight for s in adapted for side in (layer.lora_A, layer.lora_B)]
        spans = [(segment.start, segment.stop) for segment in adapted]
        routed: Tensor = _AddUpdates.apply(output, x, self._scaling, spans, *factors)  # type: ignore[no-untyped-call]
        return routed


class _AddUpdates(torch.autograd.Function):
    """Adds scaling·B·A·x to spans of tokens, in place, and keeps nothing as large as the output."""

    @staticmethod
    def forward(
        ctx: Any,
        output: Tensor,
        x: Tensor,
        scaling: float,
        spans: Sequence[tuple[int, int]],
        *factors: Tensor,
    ) -> Tensor:
        ctx.scaling, ctx.spans = scaling, spans
        flat_x, flat_output = x.flatten(0, -2), output.flatten(0, -2)
        hidden = []
        for (start, stop), a, b in zip(spans, factors[::2], factors[1::2], strict=True):
            hidden.append(flat_x[start:stop].to(a.dtype) @ a.T)
            _add_product(flat_output[start:stop], hidden[-1], b.T, scaling)
        ctx.save_for_backward(x, *hidden, *factors)
        ctx.mark_dirty(output)
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (upstream,) = gradients
        x, *saved = ctx.saved_tensors
        hidden, factors = saved[: len(ctx.spans)], saved[len(ctx.spans) :]
        flat_x, flat_upstream = x.flatten(0, -2), upstream.flatten(0, -2)
        down = torch.zeros_like(flat_x) if ctx.needs_input_grad[1] else None
        found: list[Tensor] = []
        for i, (start, stop) in enumerate(ctx.spans):
            a, b = factors[2 * i : 2 * i + 2]
            above = flat_upstream[start:stop].to(a.dtype)
            inner = (above @ b).mul_(ctx.scaling)
            if down is not None:
                down[start:stop] = inner @ a
            found += [inner.T @ flat_x[start:stop].to(a.dtype), (above.T @ hidden[i]).mul_(ctx.scaling)]
        return upstream, None if down is None else down.view_as(x), None, None, *found


def _add_product(target: Tensor, left: Tensor, right: Tensor, scale: float) -> None:
    """Add scale·left·right in place; a target of another type is rounded once, at the end."""
    if target.dtype == left.dtype:
        target.addmm_(left, right, alpha=scale)
    else:
        target.add_(left @ right, alpha=scale)
