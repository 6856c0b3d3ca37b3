"""What a benchmark suite is: items, how a model is asked, and how an answer is graded."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from populora.registry import Registry

Group = Literal["code", "mathematics", "execution"]


@dataclass(frozen=True)
class Item:
    """One question; a suite's own items carry what grading needs."""

    id: str
    """As the benchmark names it."""
    question: str
    """The benchmark's text."""


ItemT = TypeVar("ItemT", bound=Item)


@dataclass(frozen=True)
class Grade:
    """What a response was worth."""

    correct: bool
    answer: str
    """What was taken out of the response and graded; empty where there was nothing."""
    reason: str = ""
    """Why it is not correct, as a short category and detail; empty where it is."""


@dataclass(frozen=True)
class Decoding:
    """How responses of a suite are sampled."""

    max_tokens: int
    """Longest response; less where the base's context leaves less."""
    samples: int = 1
    """Responses to each item."""
    temperature: float = 0.0
    """0 is greedy."""


@dataclass(frozen=True)
class Form:
    """How an item is put to a model."""

    text: str
    """A user message where the model chats, else a text to go on with."""
    prefill: str = ""
    """Beginning of the response, given to the model and part of what is graded."""
    stop: tuple[str, ...] = ()
    """Texts that end a response."""


class Suite(ABC, Generic[ItemT]):
    """A benchmark. A new one is a file with a subclass, registered in :data:`suites`.

    Attributes:
        name: Short name, as configs select it.
        title: As tables show it.
        group: Which average it counts for.
        decoding: How the published protocol samples.
    """

    name: str
    title: str
    group: Group
    decoding: Decoding

    @abstractmethod
    def items(self) -> Sequence[ItemT]:
        """Return all items, in the benchmark's order.

        Raises:
            DataError: the data are missing or damaged; the message says where they were looked for.
        """

    @abstractmethod
    def form(self, item: ItemT, chat: bool) -> Form:
        """Return how an item is put to a model that chats, or to one that only continues text."""

    @abstractmethod
    def grade(self, answers: Sequence[tuple[ItemT, str]]) -> list[Grade]:
        """Grade responses, many at a time; whatever a response holds, it is right or wrong and never raises."""


suites: Registry[type[Suite[Item]]] = Registry("suite")
"""Suites by name."""
