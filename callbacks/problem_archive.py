"""The problems found so far, the hardest of each kind: MAP-Elites on a centroidal Voronoi tessellation."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from populora.callbacks.held_out import read_problem
from populora.errors import CheckpointError
from populora.records import Problem
from populora.tasks.complexity import descriptors

SAMPLES_PER_CELL = 20
"""Random points that k-means clusters for each centroid."""


@dataclass(frozen=True)
class Elite:
    """The hardest problem found in one cell."""

    problem: Problem
    challenge: float
    descriptors: tuple[float, ...]
    """In the units of the descriptors, cut to their ranges."""


def make_centroids(dimensions: int, cells: int, seed: int) -> NDArray[np.float64]:
    """Return centroids of a CVT of the unit cube (Vassiliades et al., 2018); (cells, dimensions), in [0, 1].

    Rounded to nine digits, so that they do not depend on the number of threads.
    """
    from ribs.archives import k_means_centroids

    centroids, _ = k_means_centroids(
        centroids=cells, ranges=[(0.0, 1.0)] * dimensions, samples=SAMPLES_PER_CELL * cells, seed=seed
    )
    return np.asarray(np.round(centroids, 9), dtype=np.float64)


class ProblemArchive:
    """Keeps for each cell of descriptor space the problem with the greatest challenge.

    Each descriptor's range is scaled to [0, 1], so that none dominates the distance; values beyond count as
    the range's end.

    Args:
        names: Descriptors, from the registry.
        centroids: (cells, descriptors), in [0, 1].
    """

    def __init__(self, names: Sequence[str], centroids: NDArray[np.float64]) -> None:
        from ribs.archives import CVTArchive

        self.names = tuple(names)
        self.centroids = centroids
        self._axes = [descriptors[name] for name in names]
        self._low = np.array([axis.low for axis in self._axes])
        self._span = np.array([axis.high for axis in self._axes]) - self._low
        self._cells = CVTArchive(
            solution_dim=(), centroids=centroids, ranges=[(0.0, 1.0)] * len(names), solution_dtype=object
        )

    @property
    def filled(self) -> int:
        """Number of cells with a problem."""
        return int(self._cells.stats.num_elites)

    @property
    def coverage(self) -> float:
        """Share of cells with a problem, in [0, 1]."""
        return self.filled / len(self.centroids)

    @property
    def qd_score(self) -> float:
        """Sum of the challenges over the cells; depends on what is filed alone, not on the order of filing."""
        return math.fsum(self._cells.data("objective"))

    @property
    def elites(self) -> list[Elite]:
        """Every cell's problem, in the order of cells."""
        data = self._cells.data(["solution", "objective", "measures", "index"])
        order = np.argsort(data["index"])
        return [
            Elite(
                read_problem(json.loads(data["solution"][i])),
                float(data["objective"][i]),
                tuple((self._low + self._span * data["measures"][i]).tolist()),
            )
            for i in order
        ]

    def add(self, problems: Sequence[Problem], challenges: Sequence[float]) -> None:
        """File problems; those whose programs cannot be measured are left out.

        Args:
            problems: New problems.
            challenges: The greater the better, not negative; one a problem.
        """
        measured = [
            (json.dumps(asdict(problem)), challenge, self._measures(problem))
            for problem, challenge in zip(problems, challenges, strict=True)
        ]
        kept = [(text, challenge, values) for text, challenge, values in measured if values is not None]
        if kept:
            self._cells.add(*zip(*kept, strict=True))

    def _measures(self, problem: Problem) -> list[float] | None:
        values = [axis(problem.program) for axis in self._axes]
        if any(value is None for value in values):
            return None
        scaled: NDArray[np.float64] = (np.array(values) - self._low) / self._span
        return [float(value) for value in scaled.clip(0.0, 1.0)]

    def state_dict(self) -> dict[str, Any]:
        """Return descriptors, centroids and elites as plain types and one tensor."""
        elites = self.elites
        return {
            "descriptors": list(self.names),
            "centroids": torch.from_numpy(self.centroids),
            "problems": [asdict(elite.problem) for elite in elites],
            "challenges": [elite.challenge for elite in elites],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], names: Sequence[str], cells: int) -> "ProblemArchive":
        """Restore an archive.

        Raises:
            CheckpointError: it was made with other descriptors or another number of cells.
        """
        stored = (tuple(state["descriptors"]), len(state["centroids"]))
        if stored != (tuple(names), cells):
            raise CheckpointError(
                f"the checkpoint's archive has descriptors {stored[0]} and {stored[1]} cells, Archive asks for "
                f"{tuple(names)} and {cells}; use those of the checkpoint"
            )
        archive = cls(names, state["centroids"].numpy())
        archive.add([read_problem(fields) for fields in state["problems"]], state["challenges"])
        return archive
