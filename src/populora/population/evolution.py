"""Who is replaced, and by whose child; free of torch until something is planned or bred."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from populora.errors import ConfigError
from populora.population.members import LineageRecord, Population
from populora.records import Member

if TYPE_CHECKING:
    from populora.population.bank import AdapterBank
    from populora.population.operators import Operator


@dataclass(frozen=True)
class EvolutionConfig:
    """Replacement of the weakest members by children of the others."""

    interval: int = 10
    """Iterations between two rounds of replacement, k."""
    fraction: float = 0.25
    """Share γ of each role that is replaced, at least one member."""
    crossover_probability: float = 0.5
    """Chance that a child has two parents; otherwise it is a mutation."""
    operators: list[str] = field(
        default_factory=lambda: [
            "svd_perturb", "layer_gaussian", "component_mask", "full_gaussian",
            "dare", "module_select", "svd_subspace", "extrapolate",
        ]
    )  # fmt: skip
    """Operators in use, uniform within their kind: names, or dotted paths to your own."""

    def __post_init__(self) -> None:
        if self.interval < 1:
            raise ConfigError(f"evolution's interval must be at least 1, got {self.interval}")
        if not 0 < self.fraction < 1:
            raise ConfigError(f"evolution's fraction must be in (0, 1), got {self.fraction}")
        if not 0 <= self.crossover_probability <= 1:
            raise ConfigError(
                f"evolution's crossover_probability must be in [0, 1], got {self.crossover_probability}"
            )
        if not self.operators:
            raise ConfigError("evolution's operators must name at least one operator, got none")


def plan(
    population: Population, rng: random.Random, config: EvolutionConfig, iteration: int
) -> tuple[LineageRecord, ...]:
    """Decide which members are replaced, by which operator and from which parents; nothing is changed.

    In each role the max(1, ⌊γN⌋) lowest by μ − 3σ are replaced, ties broken at random; a role with one
    member keeps it. Parents are drawn uniformly from the survivors of the same role.

    Args:
        population: Members and ratings.
        rng: Source of all randomness; equal states give equal plans.
        config: Fraction, operators and their probability.
        iteration: Iteration that has just ended.

    Returns:
        One record a child. Carry each out with :func:`breed`, then ``population.replace``.

    Raises:
        ConfigError: an operator is unknown, or none can be applied to the survivors.
    """
    roles = {population.teachers, population.students}
    ordered = sorted(roles, key=lambda members: members[0].role)
    return tuple(
        record for members in ordered for record in _plan_role(members, population, rng, config, iteration)
    )


def breed(record: LineageRecord, bank: "AdapterBank") -> LineageRecord:
    """Compute the child and write it into its slot of the bank; return the record for the population.

    The child depends on the parents' weights and the record alone.
    """
    import torch

    from populora.population.operators import operators

    operator = operators[record.operator](**dict(record.parameters))
    generator = torch.Generator().manual_seed(record.seed)
    bank.write(record.slot, operator([bank.read(name) for name in record.parents], generator))
    return record


def _plan_role(
    members: tuple[Member, ...],
    population: Population,
    rng: random.Random,
    config: EvolutionConfig,
    iteration: int,
) -> list[LineageRecord]:
    if len(members) == 1:
        return []
    count = max(1, int(config.fraction * len(members) + 1e-9))
    shuffled = rng.sample(members, len(members))
    ranked = sorted(shuffled, key=lambda member: population.ratings[member.name].conservative)
    return [_plan_child(slot, ranked[count:], rng, config, iteration) for slot in ranked[:count]]


def _plan_child(
    slot: Member, survivors: Sequence[Member], rng: random.Random, config: EvolutionConfig, iteration: int
) -> LineageRecord:
    """Plan one child of ``survivors``, which are in ascending order of rating."""
    name, operator = _draw_operator(len(survivors), rng, config)
    drawn = rng.sample(range(len(survivors)), operator.arity)
    parents = [survivors[i] for i in (sorted(drawn) if operator.fitter_last else drawn)]
    return LineageRecord(
        iteration=iteration,
        slot=slot.name,
        operator=name,
        parameters=operator.parameters,
        parents=tuple(parent.name for parent in parents),
        parents_born=tuple(parent.born for parent in parents),
        seed=rng.getrandbits(32),
        generation=1 + max(parent.generation for parent in parents),
    )


def _draw_operator(survivors: int, rng: random.Random, config: EvolutionConfig) -> tuple[str, "Operator"]:
    from populora.population.operators import operators

    known = {name: operators[name]() for name in config.operators}
    mutations = [name for name, operator in known.items() if operator.arity == 1]
    crossovers = [name for name, operator in known.items() if 2 <= operator.arity <= survivors]
    if not mutations and not crossovers:
        raise ConfigError(
            f"none of evolution's operators {config.operators} works with {survivors} surviving member(s); "
            "add a mutation, for example svd_perturb"
        )
    crossing = rng.random() < config.crossover_probability
    name = rng.choice(crossovers if crossovers and (crossing or not mutations) else mutations)
    return name, known[name]
