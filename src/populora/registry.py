"""Named pieces that a config selects: operators, estimators, tasks, engines, descriptors."""

import difflib
import importlib
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from populora.errors import ConfigError

T = TypeVar("T")


class Registry(Generic[T]):
    """Maps short names to pieces of one kind; a dotted path selects a piece of the user's own.

    Example:
        >>> shapes: Registry[int] = Registry("shape")
        >>> _ = shapes.register("square")(4)
        >>> shapes["square"]
        4
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._pieces: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that files a piece under ``name``.

        Raises:
            ConfigError: the name is taken.
        """
        if name in self._pieces:
            raise ConfigError(f"{self._kind} {name!r} is registered twice; choose another name")

        def file(piece: T) -> T:
            self._pieces[name] = piece
            return piece

        return file

    def __getitem__(self, name: str) -> T:
        """Return the piece called ``name``, or the object at a dotted path ``package.module.attribute``.

        Raises:
            ConfigError: nothing has that name; the message lists the nearest ones.
        """
        if name in self._pieces:
            return self._pieces[name]
        module_name, _, attribute = name.rpartition(".")
        if module_name:
            try:
                piece: T = getattr(importlib.import_module(module_name), attribute)
            except (ImportError, AttributeError) as error:
                raise ConfigError(f"cannot import {self._kind} {name!r}: {error}") from error
            return piece
        near = difflib.get_close_matches(name, self._pieces, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigError(
            f"unknown {self._kind} {name!r}{hint} Known: {', '.join(sorted(self._pieces))}, "
            "or a dotted path to your own"
        )

    def __contains__(self, name: object) -> bool:
        return name in self._pieces

    def __iter__(self) -> Iterator[str]:
        return iter(self._pieces)

    def __len__(self) -> int:
        return len(self._pieces)
