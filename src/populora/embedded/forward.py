"""The model's training loss, computed with less work than its own forward pass.

Query, key and value projections run as one product, as do gate and up; and the last layer's output is computed at
the positions that are learnt only.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

HEAD = 32

Loss = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def rotation(length: int, theta: float = 10000.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns cosines and sines of the rotary embedding, positions by 1 by half a head."""
    frequencies = theta ** -(torch.arange(0, HEAD, 2) / HEAD)
    angles = torch.arange(length)[:, None, None] * frequencies
    return angles.cos(), angles.sin()


def _norm(x: torch.Tensor, norm: Any) -> torch.Tensor:
    return functional.rms_norm(x, (x.shape[-1],), norm.weight, norm.variance_epsilon)


def _joint(x: torch.Tensor, *layers: Any) -> torch.Tensor:
    weight = torch.cat([layer.weight for layer in layers])
    bias = torch.cat([layer.bias for layer in layers]) if layers[0].bias is not None else None
    return functional.linear(x, weight, bias)


def _attention(x: torch.Tensor, layer: Any, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    rows, length, width = x.shape
    joint = _joint(x, layer.q_proj, layer.k_proj, layer.v_proj)
    rotated, value = joint[..., : 2 * width], joint[..., 2 * width :]
    left, right = rotated.view(rows, length, -1, HEAD).chunk(2, -1)
    rotated = torch.cat((left * cosines - right * sines, right * cosines + left * sines), -1)
    query, key = rotated.transpose(1, 2).chunk(2, 1)
    value = value.view(rows, length, -1, HEAD).transpose(1, 2)
    mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    return mixed.transpose(1, 2).reshape(rows, length, width)


def _rest(hidden: torch.Tensor, mixed: torch.Tensor, layer: Any) -> torch.Tensor:
    hidden = hidden + layer.self_attn.o_proj(mixed)
    x = _norm(hidden, layer.post_attention_layernorm)
    gate, up = _joint(x, layer.mlp.gate_proj, layer.mlp.up_proj).chunk(2, -1)
    added: torch.Tensor = layer.mlp.down_proj(functional.silu(gate) * up)
    return hidden + added


def response_loss(model: Any, length: int = 1024) -> Loss:
    """Returns the summed cross-entropy over chosen tokens as a function of a batch.

    The function takes token ids (sequences by positions, right-padded), flat indices of the positions that predict
    a token to learn, and those tokens.

    Args:
        model: A ``Qwen2ForCausalLM`` whose heads are all of one kind.
        length: Longest sequence.
    """
    cosines, sines = rotation(length)
    layers = list(model.model.layers)

    def loss(ids: torch.Tensor, positions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        turn = cosines[: ids.shape[1]], sines[: ids.shape[1]]
        hidden = functional.embedding(ids, model.model.embed_tokens.weight)
        for layer in layers:
            mixed = _attention(_norm(hidden, layer.input_layernorm), layer.self_attn, *turn)
            if layer is layers[-1]:
                hidden = hidden.flatten(0, 1).index_select(0, positions)
                mixed = mixed.flatten(0, 1).index_select(0, positions)
            hidden = _rest(hidden, mixed, layer)
        logits = model.lm_head(_norm(hidden, model.model.norm))
        return functional.cross_entropy(logits, targets, reduction="sum")

    return loss
