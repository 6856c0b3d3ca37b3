"""What a benchmark suite is: items, how a model is asked, and how an answer is graded."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Literal, Self, TypeVar

from populora.errors import DataError
from populora.evaluation.data import DataSet, DataSource, Origin, Row, Rows
from populora.registry import Registry

Group = Literal["code", "mathematics", "execution"]


@dataclass(frozen=True)
class Item:
    """One question; a suite's own items carry what grading needs."""

    id: str
    """As the benchmark names it; unique within a suite."""
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

    Args:
        source: Where its data are looked for.

    Attributes:
        name: Short name, as configs select it.
        title: As tables show it.
        group: Which average it counts for.
        decoding: How the published protocol samples.
        data: Its files.
    """

    name: str
    title: str
    group: Group
    decoding: Decoding
    data: DataSet

    def __init__(self, source: DataSource = DataSource()) -> None:
        self._source = source

    @abstractmethod
    def read(self, row: Row, number: int) -> ItemT:
        """Return the item that a row holds, in the local file's or the hub's form.

        Args:
            row: The row.
            number: Its place in the data set, from 0.

        Raises:
            KeyError, TypeError, ValueError: the row is not of this benchmark.
        """

    @abstractmethod
    def form(self, item: ItemT, chat: bool) -> Form:
        """Return how an item is put to a model that chats, or to one that only continues text."""

    @abstractmethod
    def grade(self, answers: Sequence[tuple[ItemT, str]]) -> list[Grade]:
        """Grade responses, many at a time; whatever a response holds, it is right or wrong and never raises."""

    @property
    def caveat(self) -> str:
        """What sets figures apart from published ones, e.g. ``public tests only``; then no average counts them.

        Known once the items are read.
        """
        return ""

    def close(self) -> None:
        """End what grading started; may be called twice."""

    def items(self) -> Sequence[ItemT]:
        """Return all items, in the benchmark's order.

        Raises:
            DataError: the data are missing or damaged; the message says where they were looked for.
        """
        return self._items

    @property
    def origin(self) -> Origin:
        """Which data the items are from."""
        return self._rows.origin

    @cached_property
    def _rows(self) -> Rows:
        return self._source.load(self.data)

    @cached_property
    def _items(self) -> tuple[ItemT, ...]:
        items = tuple(self._item(row, number) for number, row in enumerate(self._rows.rows))
        if len({item.id for item in items}) < len(items):
            raise DataError(f"{self.name}: {self.origin.source} has two items of the same id")
        return items

    def _item(self, row: Row, number: int) -> ItemT:
        try:
            return self.read(row, number)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"{self.name}: item {number} of {self.origin.source} is not of this benchmark "
                f"({type(error).__name__}: {error}); it has {', '.join(row)}"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


suites: Registry[type[Suite[Any]]] = Registry("suite")
"""Suites by name."""
