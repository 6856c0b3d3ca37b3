"""What an evaluation found, and what it adds up to."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

from populora.evaluation.data import Origin
from populora.evaluation.metrics import Score
from populora.evaluation.suite import Decoding, Group

BASE = "base"
"""The player that is the base without an adapter."""


@dataclass(frozen=True)
class Spread:
    """Accuracies of a population in one suite."""

    mean: float
    worst: float
    best: float
    """Chosen on the test set, so it promises too much."""


@dataclass(frozen=True)
class SuiteResult:
    """How all players did in one suite."""

    name: str
    title: str
    """As tables show it, with what sets it apart from the published protocol."""
    group: Group
    complete: bool
    """Whether averages count it: not where tests are missing."""
    origin: Origin
    decoding: Decoding
    scores: Mapping[str, Score]
    """By player."""
    generate_seconds: float
    grade_seconds: float

    @property
    def members(self) -> list[Score]:
        """The scores of all players but the base."""
        return [score for player, score in self.scores.items() if player != BASE]


@dataclass(frozen=True)
class Average:
    """Mean accuracies over the suites of a group, each suite counting the same."""

    title: str
    suites: tuple[str, ...]
    accuracies: Mapping[str, float]
    """By player."""


@dataclass(frozen=True)
class Results:
    """An evaluation, as far as it got."""

    model: str
    label: str
    """What was evaluated, for example after how many iterations."""
    suites: tuple[SuiteResult, ...]
    missing: tuple[str, ...] = ()
    """Suites left out, and why."""

    @property
    def players(self) -> list[str]:
        """The base and the members, in order."""
        return list(dict.fromkeys(player for suite in self.suites for player in suite.scores))

    def averages(self) -> Iterator[Average]:
        """Yield the means over code and over mathematics, of suites whose data are complete."""
        for group in ("code", "mathematics"):
            counted = [suite for suite in self.suites if suite.group == group and suite.complete]
            if counted:
                yield Average(
                    f"{group} average",
                    tuple(suite.name for suite in counted),
                    {
                        player: fmean(suite.scores[player].accuracy for suite in counted)
                        for player in self.players
                    },
                )

    def scalars(self) -> Iterator[tuple[str, float]]:
        """Yield tag and accuracy of every player and of the population's mean, for a logger."""
        rows = [(s.name, {p: score.accuracy for p, score in s.scores.items()}) for s in self.suites]
        rows += [(average.title.replace(" ", "_"), dict(average.accuracies)) for average in self.averages()]
        for name, accuracies in rows:
            for player, accuracy in accuracies.items():
                yield f"suites/{name}/{player}", accuracy
            members = [accuracy for player, accuracy in accuracies.items() if player != BASE]
            if members:
                yield f"suites/{name}/population_mean", fmean(members)

    def write(self, path: Path) -> None:
        """Write everything as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        content = asdict(self) | {"averages": [asdict(average) for average in self.averages()]}
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def spread(accuracies: Sequence[float]) -> Spread | None:
    """Return mean, worst and best of the members; None without members."""
    return Spread(fmean(accuracies), min(accuracies), max(accuracies)) if accuracies else None
