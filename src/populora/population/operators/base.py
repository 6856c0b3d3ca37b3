"""What every operator shares: the call, the checks, and the promise that a child can learn."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import torch

from populora.population.lowrank import Adapter, LowRank, fresh_rows
from populora.registry import Registry


class Operator(ABC):
    """Makes a child's weights from those of one parent (a mutation) or two (a crossover).

    A subclass is a frozen dataclass whose fields are its strengths, numbers with the paper's defaults.
    Calling it returns a child with the parents' modules and rank, float32, finite, and without dead
    components (a row of A and the column of B both zero, which no gradient can revive).

    Example:
        >>> @operators.register("halve")
        ... @dataclass(frozen=True)
        ... class Halve(Operator):
        ...     arity = 1
        ...     factor: float = 0.5
        ...
        ...     def breed(self, parents, generator):
        ...         return {path: LowRank(u.a, self.factor * u.b) for path, u in parents[0].items()}
    """

    arity: ClassVar[int]
    """Number of parents: 1 for a mutation, 2 for a crossover."""
    fitter_last: ClassVar[bool] = False
    """Whether the parents come in ascending order of rating, else in random order."""

    def __call__(self, parents: Sequence[Adapter], generator: torch.Generator) -> Adapter:
        """Return the child of ``parents``; they are not changed.

        Args:
            parents: ``arity`` adapters with equal module paths and shapes, on the CPU.
            generator: Source of all randomness, on the CPU.

        Raises:
            ValueError: wrong number of parents, parents of different shapes, or values that are not finite.
        """
        parents = self._ordered(parents)
        child = self.breed(parents, generator)
        return {path: _finish(path, child[path], parents[0][path], generator) for path in parents[0]}

    @abstractmethod
    def breed(self, parents: Sequence[Adapter], generator: torch.Generator) -> Adapter:
        """Compute the child; parents are checked, float32, and have their modules in sorted order."""

    @property
    def parameters(self) -> tuple[tuple[str, float], ...]:
        """The strengths, as a lineage record keeps them; ``type(self)(**dict(parameters))`` is equal."""
        fields: Any = self
        return tuple((f.name, float(getattr(self, f.name))) for f in dataclasses.fields(fields))

    def _ordered(self, parents: Sequence[Adapter]) -> list[Adapter]:
        if len(parents) != self.arity:
            raise ValueError(f"{type(self).__name__} takes {self.arity} parent(s), got {len(parents)}")
        shapes = [{path: (u.a.shape, u.b.shape) for path, u in parent.items()} for parent in parents]
        if any(other != shapes[0] for other in shapes):
            raise ValueError(
                f"{type(self).__name__} needs parents with equal modules and ranks, got {shapes[0]} "
                f"and {shapes[-1]}"
            )
        return [
            {path: _finite(path, parent[path], "a parent") for path in sorted(parent)} for parent in parents
        ]


operators: Registry[type[Operator]] = Registry("operator")
"""All operators, by the name that a config or a lineage record uses."""


def _finite(path: str, update: LowRank, whose: str) -> LowRank:
    if not update.finite:
        raise ValueError(f"{whose}'s factors at {path} hold a value that is not finite")
    return LowRank(update.a.detach().float(), update.b.detach().float())


def _finish(path: str, child: LowRank, parent: LowRank, generator: torch.Generator) -> LowRank:
    """Return an independent copy of the child's module, checked, its dead components restarted."""
    if (child.a.shape, child.b.shape) != (parent.a.shape, parent.b.shape):
        raise ValueError(
            f"the child's factors at {path} must have shapes {tuple(parent.a.shape)} and "
            f"{tuple(parent.b.shape)}, got {tuple(child.a.shape)} and {tuple(child.b.shape)}"
        )
    child = _finite(path, child, "the child")
    a = child.a.clone()
    dead = (child.a == 0).all(dim=1) & (child.b == 0).all(dim=0)
    a[dead] = fresh_rows(int(dead.sum()), a.shape[1], generator)
    return LowRank(a, child.b.clone())
