"""A digest by which trainer and engine agree, or not, on the weights of an adapter.

The trainer computes it from the factors it trains, the engine from the tensors its layers really multiply
with. Equal digests mean bitwise equal weights (up to a collision of a 128-bit hash).
"""

import hashlib
from collections.abc import Iterable

import torch
from torch import Tensor


def as_served(a: Tensor, b: Tensor, scaling: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return the factors of one module as the engine holds them.

    The engine casts both factors to its own type and folds the scaling α/r into B, in that type.

    Args:
        a: Factor A, (r, in).
        b: Factor B, (out, r).
        scaling: α/r.
        dtype: Type of the engine's weights.
    """
    b = b.detach().to(dtype)
    return a.detach().to(dtype), b if scaling == 1 else b * scaling


def fingerprint(factors: Iterable[tuple[str, Tensor, Tensor]]) -> str:
    """Return the digest (32 hex characters) of an adapter's factors, in any order of modules.

    Args:
        factors: For each adapted module its path in the base (``model.layers.0.self_attn.q_proj``, without
            PEFT's prefix), A (r, in) and B (out, r), both as served.
    """
    digest = hashlib.blake2b(digest_size=16)
    for module, a, b in sorted(factors, key=lambda item: item[0]):
        for tensor in (a, b):
            digest.update(f"{module} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def module_path(key: str) -> str:
    """Return the module's path in the base from the name of a factor in PEFT's file."""
    return key.removeprefix("base_model.model.").rpartition(".lora_")[0]
