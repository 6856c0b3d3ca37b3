"""Who plays: members, their ratings and their descent; no weights."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from populora.config import PopulationConfig
from populora.errors import CheckpointError
from populora.population.ratings import Ratings
from populora.records import Member, Role


@dataclass(frozen=True)
class LineageRecord:
    """How a child comes about: with its parents' weights, all that is needed to compute it again."""

    iteration: int
    """Iteration after which the child is bred."""
    slot: str
    """Member whose weights the child replaces."""
    operator: str
    """Name in the registry of operators."""
    parameters: tuple[tuple[str, float], ...]
    """The operator's strengths."""
    parents: tuple[str, ...]
    """Slots of the parents, in the order in which the operator takes them."""
    parents_born: tuple[int, ...]
    """``born`` of each parent; with the slot it identifies the parent's line."""
    seed: int
    """Of the generator the operator draws from."""
    generation: int
    """The child's generation."""


class Population:
    """Members in fixed slots, with ratings and lineage.

    Args:
        config: Number of members, or one shared agent.
    """

    def __init__(self, config: PopulationConfig) -> None:
        counts = (
            {Role.AGENT: 1}
            if config.shared
            else {Role.TEACHER: config.teachers, Role.STUDENT: config.students}
        )
        members = (Member(f"{role}-{i}", role) for role, count in counts.items() for i in range(count))
        self._members = {member.name: member for member in members}
        self._lineage: list[LineageRecord] = []
        self.ratings = Ratings(self._members)

    @property
    def members(self) -> tuple[Member, ...]:
        """All members: teachers then students, or the one agent."""
        return tuple(self._members.values())

    @property
    def teachers(self) -> tuple[Member, ...]:
        """The members that propose, the shared agent included."""
        return tuple(m for m in self.members if m.role is not Role.STUDENT)

    @property
    def students(self) -> tuple[Member, ...]:
        """The members that solve, the shared agent included."""
        return tuple(m for m in self.members if m.role is not Role.TEACHER)

    @property
    def lineage(self) -> tuple[LineageRecord, ...]:
        """Every replacement so far, oldest first."""
        return tuple(self._lineage)

    def __getitem__(self, name: str) -> Member:
        return self._members[name]

    def advance(self, name: str) -> Member:
        """Count a change of ``name``'s weights and return the member as it is now."""
        member = self._members[name]
        self._members[name] = dataclasses.replace(member, version=member.version + 1)
        return self._members[name]

    def replace(self, record: LineageRecord) -> Member:
        """Move a child into ``record.slot``, with a fresh rating (the paper is silent), and return it."""
        self._members[record.slot] = dataclasses.replace(
            self._members[record.slot], generation=record.generation, born=record.iteration + 1
        )
        self.ratings.reset(record.slot)
        self._lineage.append(record)
        return self.advance(record.slot)

    def state_dict(self) -> dict[str, Any]:
        """Return members, ratings and lineage as plain types that JSON can hold."""
        return {
            "members": {m.name: [m.generation, m.born, m.version] for m in self.members},
            "ratings": self.ratings.state_dict(),
            "lineage": [dataclasses.asdict(record) for record in self._lineage],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what :meth:`state_dict` returned.

        Raises:
            CheckpointError: the state has other slots than this population.
        """
        saved, own = set(state["members"]), set(self._members)
        if saved != own:
            raise CheckpointError(
                f"the checkpoint's population differs from this run's: missing {sorted(own - saved)}, "
                f"unexpected {sorted(saved - own)}; resume with the model.population it was made with"
            )
        for name, (generation, born, version) in state["members"].items():
            self._members[name] = dataclasses.replace(
                self._members[name], generation=generation, born=born, version=version
            )
        self.ratings.load_state_dict(state["ratings"])
        self._lineage = [_read_record(record) for record in state["lineage"]]


def _read_record(record: Mapping[str, Any]) -> LineageRecord:
    pairs = tuple((name, value) for name, value in record["parameters"])
    tuples = {"parents": tuple(record["parents"]), "parents_born": tuple(record["parents_born"])}
    return LineageRecord(**{**record, **tuples, "parameters": pairs})
