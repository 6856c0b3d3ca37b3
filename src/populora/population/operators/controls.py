"""Controls of the retention test: what an operator has to be compared with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from populora.population.lowrank import Adapter, weighted_sum
from populora.population.operators.base import Operator, operators


@operators.register("copy_parent")
@dataclass(frozen=True)
class CopyParent(Operator):
    """Copy the parent."""

    arity: ClassVar[int] = 1

    def breed(self, parents: Sequence[Adapter], generator: torch.Generator) -> Adapter:
        """Return the parent itself; the call copies."""
        return parents[0]


@operators.register("linear_mean")
@dataclass(frozen=True)
class LinearMean(Operator):
    """Take the mean of the two products."""

    arity: ClassVar[int] = 2

    def breed(self, parents: Sequence[Adapter], generator: torch.Generator) -> Adapter:
        """Average every module."""
        return {path: weighted_sum([p[path] for p in parents], [0.5, 0.5], generator) for path in parents[0]}
