"""Sequences of a mixed batch in one row without padding, and the attention that keeps them apart."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from populora.errors import ConfigError

ATTENTION = "populora_packed"
"""Name under which transformers knows :func:`packed_attention`."""


@dataclass(frozen=True)
class Bundle:
    """Sequences of one adapter that begin alike."""

    adapter: str | None
    """None: the base alone."""
    beginning: tuple[int, ...]
    """Tokens that all of them begin with, at least one."""
    endings: tuple[tuple[int, ...], ...]
    """The tokens that follow, for each sequence; may be none."""


@dataclass(frozen=True)
class Segment:
    """Consecutive tokens that share an adapter."""

    start: int
    stop: int
    adapter: str | None
    """None: the base alone."""


@dataclass(frozen=True, eq=False)
class Layout:
    """B sequences, laid out as T tokens: what sequences of a bundle begin with is there once.

    Everything but attention is computed for the T tokens; attention for whole sequences, which are put together for it.
    """

    input_ids: Tensor
    """(T,) int64."""
    positions: Tensor
    """(T,) int64, place of each token in its sequence."""
    rows: Tensor
    """(B, L) int64, the token at each place of each sequence; after its end its first one."""
    places: Tensor
    """(T,) int64, a place of each token in the flattened ``rows``."""
    segments: tuple[Segment, ...]

    def without_adapters(self) -> Self:
        """Return the same sequences for the base alone."""
        return replace(self, segments=())

    def to(self, device: torch.device) -> Self:
        """Return the same layout with its tensors on another device."""
        tensors = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "segments"}
        return replace(self, **{name: tensor.to(device) for name, tensor in tensors.items()})


def lay_out(bundles: Sequence[Bundle]) -> Layout:
    """Lay out one bundle after the other; ``rows`` has their sequences in the order given."""
    input_ids: list[int] = []
    positions: list[int] = []
    sequences: list[list[int]] = []
    segments: list[Segment] = []
    for bundle in bundles:
        start, length = len(input_ids), len(bundle.beginning)
        input_ids += bundle.beginning
        positions += range(length)
        for ending in bundle.endings:
            own = range(len(input_ids), len(input_ids) + len(ending))
            sequences.append([*range(start, start + length), *own])
            positions += range(length, length + len(ending))
            input_ids += ending
        if segments and segments[-1].adapter == bundle.adapter:
            start = segments.pop().start
        segments.append(Segment(start, len(input_ids), bundle.adapter))
    rows = np.empty((len(sequences), max(map(len, sequences))), dtype=np.int64)
    places = np.empty(len(input_ids), dtype=np.int64)
    for row, tokens in enumerate(sequences):
        rows[row] = tokens[0]
        rows[row, : len(tokens)] = tokens
        places[tokens] = row * rows.shape[1] + np.arange(len(tokens))
    return Layout(
        input_ids=torch.tensor(input_ids),
        positions=torch.tensor(positions),
        rows=torch.from_numpy(rows),
        places=torch.from_numpy(places),
        segments=tuple(segments),
    )


def use_packed_attention(model: Any) -> None:
    """Make a transformers model attend within the sequences of the layout it is called with.

    Raises:
        ConfigError: the model computes attention in its own way.
    """
    implementation = model.config._attn_implementation
    if implementation == "sdpa":
        model.set_attn_implementation(ATTENTION)
    if model.config._attn_implementation != ATTENTION:
        raise ConfigError(
            f"model.base.path: {type(model).__name__} computes attention by {implementation!r}; expected a model "
            "that leaves it to transformers' AttentionInterface with 'sdpa', as Llama, Qwen and Mistral do"
        )


def packed_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    layout: Layout | None = None,
    sliding_window: int | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Compute causal attention within each sequence of a layout.

    Padding needs no mask: it comes after a sequence's end, where causal attention does not look. What is not finite in
    one sequence stays there, since the padding is its own.

    Args:
        module: Attention layer.
        query: (1, heads, T, d).
        key: (1, key heads, T, d).
        value: (1, key heads, T, d).
        attention_mask: None; the layout says it all.
        layout: Handed down by the model as a keyword argument.
        sliding_window: Tokens a token sees, itself included; None is all.
        **kwargs: Settings of transformers' ``sdpa`` attention.

    Returns:
        (1, T, heads, d), and no attention weights.
    """
    if layout is None:
        raise ConfigError(
            f"{type(module).__name__} got no layout: the base is called through AdapterBank.hidden_states alone, "
            "and must hand keyword arguments down to its attention"
        )
    query, key, value = (_spread(x, layout.rows) for x in (query, key, value))
    mask = _window(layout.rows.shape[1], sliding_window, query.device)
    output, _ = sdpa_attention_forward(module, query, key, value, mask, **kwargs)
    return output.flatten(0, 1).index_select(0, layout.places)[None], None


AttentionInterface.register(ATTENTION, packed_attention)


def _spread(x: Tensor, rows: Tensor) -> Tensor:
    """Put sequences together: (1, heads, T, d) → (B, heads, L, d)."""
    tokens = x[0].transpose(0, 1).index_select(0, rows.flatten())
    return tokens.view(*rows.shape, *tokens.shape[1:]).transpose(1, 2)


def _window(length: int, window: int | None, device: torch.device) -> Tensor | None:
    """Return who sees whom, (1, 1, L, L), where causality alone does not say it."""
    if window is None or window >= length:
        return None
    near = torch.ones(length, length, dtype=torch.bool, device=device).tril().triu(1 - window)
    return near[None, None]
