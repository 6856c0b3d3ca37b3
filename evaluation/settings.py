"""What an evaluation may change about the suites' protocols."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from populora.errors import ConfigError
from populora.evaluation.suite import Decoding, Suite

T = TypeVar("T")


@dataclass(frozen=True)
class EvaluationSettings:
    """Part of the items, other sampling, and limits; what is none is as each suite's protocol has it."""

    limit: int | None = None
    """Items of each suite, evenly spaced; none: all."""
    samples: int | None = None
    """Responses to each item: avg@k and pass@k; needs a temperature above 0 to differ."""
    temperature: float | None = None
    """Sampling temperature; 0 is greedy."""
    max_tokens: int | None = None
    """Longest response; never longer than a suite's own limit."""
    seed: int = 0
    """Of the sampling."""

    def __post_init__(self) -> None:
        for name in ("limit", "samples", "max_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"evaluation {name} must be at least 1 or none, got {value}")
        if self.temperature is not None and self.temperature < 0:
            raise ConfigError(f"evaluation temperature must be 0 or more, got {self.temperature}")

    def decoding(self, suite: Suite[Any]) -> Decoding:
        """Return how responses of a suite are sampled.

        Raises:
            ConfigError: several greedy responses to one item would all be the same.
        """
        own = suite.decoding
        decoding = replace(
            own,
            max_tokens=min(own.max_tokens, self.max_tokens or own.max_tokens),
            samples=self.samples or own.samples,
            temperature=own.temperature if self.temperature is None else self.temperature,
        )
        if decoding.samples > 1 and decoding.temperature == 0:
            raise ConfigError(
                f"{suite.name}: {decoding.samples} samples at temperature 0 are all the same; set a temperature"
            )
        return decoding

    def chosen(self, items: Sequence[T]) -> Sequence[T]:
        """Return the items evaluated."""
        if self.limit is None or self.limit >= len(items):
            return items
        return [items[index * len(items) // self.limit] for index in range(self.limit)]
