"""Operators with one parent."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from populora.population.lowrank import Adapter, Components, LowRank, cayley_rotation, compose, svd
from populora.population.operators.base import Operator, operators


@operators.register("svd_perturb")
@dataclass(frozen=True)
class SvdPerturb(Operator):
    """Scale the singular values and turn both bases a little.

    Singular values are multiplied by exp(``strength``·z), z standard normal; the left and the right basis
    each get a random Cayley rotation within their span, by about ``strength`` radians an axis (the paper
    is silent on the angle).
    """

    arity: ClassVar[int] = 1
    strength: float = 0.1

    def breed(self, parents: Sequence[Adapter], generator: torch.Generator) -> Adapter:
        """Perturb every module."""
        return {path: self._perturb(update, generator) for path, update in parents[0].items()}

    def _perturb(self, update: LowRank, generator: torch.Generator) -> LowRank:
        parts = svd(update)
        size = len(parts.s)
        scales = torch.exp(self.strength * torch.randn(size, generator=generator))
        left = cayley_rotation(size, self.strength, generator)
        right = cayley_rotation(size, self.strength, generator)
        return compose(Components(parts.u @ left, parts.s * scales, right @ parts.vh), update.rank, generator)


@operators.register("component_mask")
@dataclass(frozen=True)
class ComponentMask(Operator):
    """Drop ⌈``fraction``·r⌉ random singular components of every module.

    A dropped component restarts like a fresh LoRA row, A random and B zero, so that it stays trainable.
    """

    arity: ClassVar[int] = 1
    fraction: float = 0.3

    def breed(self, parents: Sequence[Adapter], generator: torch.Generator) -> Adapter:
        """Mask every module."""
        return {path: self._mask(update, generator) for path, update in parents[0].items()}

    def _mask(self, update: LowRank, generator: torch.Generator) -> LowRank:
        parts = svd(update)
        dropped = _choose(len(parts.s), math.ceil(self.fraction * len(parts.s) - 1e-9), generator)
        return compose(
            Components(parts.u, parts.s.index_fill(0, dropped, 0.0), parts.vh), update.rank, generator
        )


@operators.register("layer_gaussian")
@dataclass(frozen=True)
class LayerGaussian(Operator):
    """Add noise of ``strength`` × the tensor's standard deviation to a random ``fraction`` of the modules."""

    arity: ClassVar[int] = 1
    fraction: float = 0.33
    strength: float = 0.1

    def breed(self, parents: Sequence[Adapter], generator: torch.Generator) -> Adapter:
        """Perturb both factors of the chosen modules, at least one."""
        paths = list(parents[0])
        chosen = _choose(len(paths), max(1, round(self.fraction * len(paths))), generator)
        noisy = {paths[i] for i in chosen.tolist()}
        return {
            path: _add_noise(update, self.strength, generator) if path in noisy else update
            for path, update in parents[0].items()
        }


@operators.register("full_gaussian")
@dataclass(frozen=True)
class FullGaussian(Operator):
    """Add noise of ``strength`` × the tensor's standard deviation to every tensor."""

    arity: ClassVar[int] = 1
    strength: float = 0.15

    def breed(self, parents: Sequence[Adapter], generator: torch.Generator) -> Adapter:
        """Perturb both factors of all modules."""
        return {path: _add_noise(update, self.strength, generator) for path, update in parents[0].items()}


def _choose(total: int, count: int, generator: torch.Generator) -> Tensor:
    return torch.randperm(total, generator=generator)[:count]


def _add_noise(update: LowRank, strength: float, generator: torch.Generator) -> LowRank:
    def noisy(factor: Tensor) -> Tensor:
        deviation = factor.std(correction=0)
        return factor + strength * deviation * torch.randn(factor.shape, generator=generator)

    return LowRank(noisy(update.a), noisy(update.b))
