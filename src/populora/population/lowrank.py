"""Linear algebra on low-rank updates, without ever forming the full matrix.

An adapted module's update is ΔW = (α/r)·B·A. All members share α/r, so the functions here work on the
product B·A alone.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

_ROW_NORM = 1 / math.sqrt(3)
"""Expected norm of a row of a fresh A."""


@dataclass(frozen=True)
class LowRank:
    """The product B·A of one adapted module, as its factors."""

    a: Tensor
    """(r, in)."""
    b: Tensor
    """(out, r)."""

    @property
    def rank(self) -> int:
        """Number of components r."""
        return self.a.shape[0]

    @property
    def finite(self) -> bool:
        """Whether no entry is infinite or not a number; the extremes show it at an eighth of the cost."""
        return all(bool(extreme.isfinite()) for f in (self.a, self.b) for extreme in f.aminmax())


Adapter = Mapping[str, LowRank]
"""Module path in the base, for example ``model.layers.0.self_attn.q_proj``, to its factors."""


@dataclass(frozen=True)
class Components:
    """A product as the sum of sᵢ·uᵢ·vᵢᵀ over k = min(r, in, out) components."""

    u: Tensor
    """(out, k), columns of length one."""
    s: Tensor
    """(k,), not negative."""
    vh: Tensor
    """(k, in), rows of length one."""


def fresh_rows(count: int, width: int, generator: torch.Generator) -> Tensor:
    """Draw rows of A as at initialisation: uniform in ±1/√width, LoRA's Kaiming rule; (count, width)."""
    return (2 * torch.rand(count, width, generator=generator) - 1) / math.sqrt(width)


def svd(update: LowRank) -> Components:
    """Return the singular components of B·A, largest first.

    Goes through QR of both factors, so that only an r × r matrix is decomposed.
    """
    q_out, r_out = torch.linalg.qr(update.b)
    q_in, r_in = torch.linalg.qr(update.a.T)
    u, s, vh = torch.linalg.svd(r_out @ r_in.T, full_matrices=False)
    return Components(q_out @ u, s, vh @ q_in.T)


def compose(parts: Components, rank: int, generator: torch.Generator) -> LowRank:
    """Return rank-``rank`` factors of the first ``rank`` components.

    Rows of A get the norm of a fresh row and B the rest, so that a child learns at the pace of any other
    adapter (the paper is silent). Components that are numerically zero, or missing because the module is
    narrower than ``rank``, restart like a fresh LoRA row: A random, B zero.
    """
    out_features, in_features = parts.u.shape[0], parts.vh.shape[1]
    s = parts.s[:rank]
    tolerance = s.max() * torch.finfo(s.dtype).eps * len(s)
    alive = (s > tolerance).nonzero().flatten()
    a = fresh_rows(rank, in_features, generator)
    b = torch.zeros(out_features, rank)
    a[alive] = parts.vh[alive] * _ROW_NORM
    b[:, alive] = parts.u[:, alive] * (s[alive] / _ROW_NORM)
    return LowRank(a, b)


def weighted_sum(updates: Sequence[LowRank], weights: Sequence[float], generator: torch.Generator) -> LowRank:
    """Return the best rank-r approximation (Eckart and Young, 1936) of Σ wᵢ·Bᵢ·Aᵢ.

    The mean of factors is not the mean of products: the factors are stacked instead, which is exact, and
    the sum is cut back to the rank of the first update.
    """
    stacked = LowRank(
        torch.cat([update.a for update in updates]),
        torch.cat([weight * update.b for weight, update in zip(weights, updates, strict=True)], dim=1),
    )
    return compose(svd(stacked), updates[0].rank, generator)


def cayley_rotation(size: int, angle: float, generator: torch.Generator) -> Tensor:
    """Draw a rotation (I − K/2)⁻¹(I + K/2), K skew-symmetric; (size, size), orthogonal.

    Args:
        size: Number of axes.
        angle: About how far, in radians, each axis turns (root mean square, for small angles).
        generator: Source of K.
    """
    if size == 1:
        return torch.eye(1)
    noise = torch.randn(size, size, generator=generator)
    skew = (noise - noise.T) * (angle / math.sqrt(2 * (size - 1)))
    identity = torch.eye(size)
    rotation: Tensor = torch.linalg.solve(identity - skew / 2, identity + skew / 2)
    return rotation
