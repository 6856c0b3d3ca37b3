"""Replacement of the weakest members by children of the others."""

import logging
from collections.abc import Sequence
from typing import Any

import lightning as L
from typing_extensions import override

from populora.callbacks.lineage import describe, lineage_figure, lineage_table
from populora.callbacks.run import bank_of, module_of
from populora.callbacks.tensorboard import log_figure, log_text
from populora.population.evolution import EvolutionConfig, breed, plan
from populora.population.operators import operators as known_operators
from populora.population.optimizer import reset_member
from populora.records import RolloutBatch
from populora.seeding import run_seed, stream

logger = logging.getLogger(__name__)


class Evolution(L.Callback):
    """Breeds every ``interval`` iterations; children start with a fresh rating and empty moments.

    In each role the lowest by μ − 3σ are replaced. All randomness derives from the run's seed and the
    iteration, so a resumed run breeds what the uninterrupted one would have bred. Place it after
    :class:`~populora.callbacks.RatingUpdates`, and after
    :class:`~populora.callbacks.PopulationEvaluation` to have the parents' generation evaluated.

    Args:
        interval: Iterations between two rounds of replacement, k.
        fraction: Share γ of each role that is replaced, in (0, 1); at least one member, none where a role
            has one member.
        crossover_probability: Chance that a child has two parents; otherwise it is a mutation.
        operators: Operators in use, uniform within their kind: names, or dotted paths to your own.

    Raises:
        ConfigError: an argument is out of bounds, or an operator is unknown.
    """

    def __init__(
        self,
        interval: int = 10,
        fraction: float = 0.25,
        crossover_probability: float = 0.5,
        operators: Sequence[str] = (
            "svd_perturb",
            "layer_gaussian",
            "component_mask",
            "full_gaussian",
            "dare",
            "module_select",
            "svd_subspace",
            "extrapolate",
        ),
    ) -> None:
        self._config = EvolutionConfig(interval, fraction, crossover_probability, list(operators))
        for name in operators:
            known_operators[name]

    @override
    def on_train_batch_end(
        self,
        trainer: L.Trainer,
        pl_module: L.LightningModule,
        outputs: Any,
        batch: RolloutBatch,
        batch_idx: int,
    ) -> None:
        if (batch.iteration + 1) % self._config.interval == 0:
            self._evolve(trainer, batch.iteration)

    def _evolve(self, trainer: L.Trainer, iteration: int) -> None:
        module = module_of(trainer)
        rng = stream(run_seed(), "evolution", iteration)
        planned = plan(module.population, rng, self._config, iteration)
        for birth in planned:
            record = breed(birth, bank_of(trainer))
            module.population.replace(record)
            reset_member(module.optimizer, record.slot)
            logger.info("After iteration %d: %s", iteration + 1, describe(record))
        if planned:
            self._log_lineage(trainer, iteration + 1)

    def _log_lineage(self, trainer: L.Trainer, step: int) -> None:
        population = module_of(trainer).population
        log_text(trainer, "lineage/births", lineage_table(population.lineage), step)
        slots = [member.name for member in population.members]
        log_figure(trainer, "lineage/tree", lineage_figure(slots, population.lineage, step), step)
