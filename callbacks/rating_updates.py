"""Ratings from matches."""

from typing import Any, Literal, get_args

import lightning as L
from typing_extensions import override

from populora.callbacks.run import module_of
from populora.callbacks.tensorboard import log_scalars
from populora.errors import ConfigError
from populora.population.members import Population
from populora.population.ratings import decide
from populora.records import RolloutBatch

Rule = Literal["expected", "majority"]


class RatingUpdates(L.Callback):
    """Updates the TrueSkill ratings once a match and iteration, from the match's solve rate.

    Problems from the buffer do not count: only those of the match's own teacher. Place it before
    :class:`~populora.callbacks.Evolution`, which ranks by these ratings. Without it every member keeps the
    rating of a newcomer and meets every other with equal chance.

    Args:
        rule: ``expected``: the student wins above the chance that the ratings gave it; ``majority``: above
            one half. The paper is silent.

    Raises:
        ConfigError: ``rule`` is neither.
    """

    def __init__(self, rule: Rule = "expected") -> None:
        if rule not in get_args(Rule):
            raise ConfigError(f"RatingUpdates(rule={rule!r}): expected 'expected' or 'majority'")
        self._rule = rule

    @override
    def on_train_batch_end(
        self,
        trainer: L.Trainer,
        pl_module: L.LightningModule,
        outputs: Any,
        batch: RolloutBatch,
        batch_idx: int,
    ) -> None:
        population = module_of(trainer).population
        self._rate(population, batch)
        log_scalars(trainer, _scalars(population), batch.iteration + 1)

    def _rate(self, population: Population, batch: RolloutBatch) -> None:
        for index, match in enumerate(batch.matches):
            outcome = decide(batch.solve_rate(index), match.win_probability, self._rule)
            population.ratings.record(match.teacher.name, match.student.name, outcome)


def _scalars(population: Population) -> dict[str, float]:
    scalars = {}
    for member in population.members:
        rating = population.ratings[member.name]
        scalars[f"rating_mu/{member.name}"] = rating.mu
        scalars[f"rating_sigma/{member.name}"] = rating.sigma
        scalars[f"rating_conservative/{member.name}"] = rating.conservative
    return scalars
