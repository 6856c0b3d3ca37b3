"""Operators with two parents."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from populora.population.lowrank import Adapter, Components, LowRank, compose, svd, weighted_sum
from populora.population.operators.base import Operator, operators


@operators.register("dare")
@dataclass(frozen=True)
class Dare(Operator):
    """Drop and rescale (Yu et al., 2023, arXiv 2311.03099) each parent's factors, then combine the products.

    Every entry is dropped with probability ``drop_rate``, survivors are divided by 1 − ``drop_rate``.
    """

    arity: ClassVar[int] = 2
    drop_rate: float = 0.7
    weight: float = 0.5
    """Of each parent's product: 0.5 is the mean; 1.0, the sum, is the other reading of the paper."""

    def breed(self, parents: Sequence[Adapter], generator: torch.Generator) -> Adapter:
        """Combine every module."""
        return {path: self._combine([p[path] for p in parents], generator) for path in parents[0]}

    def _combine(self, updates: Sequence[LowRank], generator: torch.Generator) -> LowRank:
        sparse = [LowRank(self._drop(u.a, generator), self._drop(u.b, generator)) for u in updates]
        return weighted_sum(sparse, [self.weight] * len(sparse), generator)

    def _drop(self, factor: Tensor, generator: torch.Generator) -> Tensor:
        kept = torch.rand(factor.shape, generator=generator) >= self.drop_rate
        return factor * kept / (1 - self.drop_rate)


@operators.register("module_select")
@dataclass(frozen=True)
class ModuleSelect(Operator):
    """Take each module whole from one parent, from the second with ``probability``."""

    arity: ClassVar[int] = 2
    probability: float = 0.5
    by_layer: bool = False
    """Draw once a layer, so that modules which work together stay together, instead of once a module."""

    def breed(self, parents: Sequence[Adapter], generator: torch.Generator) -> Adapter:
        """Draw a parent for every module."""
        units = {path: _layer(path) if self.by_layer else path for path in parents[0]}
        draws = {
            unit: bool(torch.rand((), generator=generator) < self.probability)
            for unit in dict.fromkeys(units.values())
        }
        return {path: parents[draws[unit]][path] for path, unit in units.items()}


@operators.register("svd_subspace")
@dataclass(frozen=True)
class SvdSubspace(Operator):
    """Take the first k singular components from one parent and the rest from the other.

    k is uniform in 1 … r − 1, drawn for each module; with r = 1 the first parent's module is taken.
    """

    arity: ClassVar[int] = 2

    def breed(self, parents: Sequence[Adapter], generator: torch.Generator) -> Adapter:
        """Mix every module."""
        first, second = parents
        return {path: self._mix(first[path], second[path], generator) for path in first}

    def _mix(self, first: LowRank, second: LowRank, generator: torch.Generator) -> LowRank:
        one, two = svd(first), svd(second)
        k = int(torch.randint(1, max(2, len(one.s)), (), generator=generator))
        mixed = Components(
            torch.cat([one.u[:, :k], two.u[:, k:]], dim=1),
            torch.cat([one.s[:k], two.s[k:]]),
            torch.cat([one.vh[:k], two.vh[k:]]),
        )
        return compose(mixed, first.rank, generator)


@operators.register("extrapolate")
@dataclass(frozen=True)
class Extrapolate(Operator):
    """Go from the first parent to the second, the fitter, and beyond: ΔW₁ + η(ΔW₂ − ΔW₁).

    η is uniform in ``low`` … ``high``, drawn once for the whole adapter.
    """

    arity: ClassVar[int] = 2
    fitter_last: ClassVar[bool] = True
    low: float = 1.0
    high: float = 1.5

    def breed(self, parents: Sequence[Adapter], generator: torch.Generator) -> Adapter:
        """Extrapolate every module by the same η."""
        eta = self.low + (self.high - self.low) * float(torch.rand((), generator=generator))
        return {
            path: weighted_sum([p[path] for p in parents], [1 - eta, eta], generator) for path in parents[0]
        }


def _layer(path: str) -> str:
    """Return the part of a module path up to its first number: the decoder layer."""
    found = re.match(r".*?\.\d+(?=\.|$)", path)
    return found.group() if found else path
