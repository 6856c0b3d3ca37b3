"""Weight-space operators: four mutations, four crossovers and two controls."""

from populora.population.lowrank import Adapter, LowRank
from populora.population.operators import controls, crossovers, mutations
from populora.population.operators.base import Operator, operators

__all__ = ["Adapter", "LowRank", "Operator", "controls", "crossovers", "mutations", "operators"]
