"""Writes a program's result as text, in the program's own process; standard library alone, like the zygote.

Accepted are, by exact type, ``None``, ``bool``, ``int``, ``float``, ``str``, ``bytes``, ``list``, ``tuple``,
``set``, ``frozenset``, ``dict``, ``Counter``, ``defaultdict``, ``OrderedDict``, ``deque``, ``Decimal`` and ``Fraction``,
as :mod:`populora.tasks.literals` reads them.
"""

import builtins
import math
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

# From here on this file's functions keep the builtins of now, whatever a program patches.
globals()["__builtins__"] = dict(vars(builtins))

MAX_DEPTH = 100

_SEQUENCES: tuple[tuple[type, str, str], ...] = (
    (list, "[", "]"),
    (tuple, "(", ")"),
    (set, "{", "}"),
    (frozenset, "frozenset({", "})"),
    (deque, "deque([", "])"),
)
_MAPPINGS: tuple[tuple[type, str, str, Any], ...] = (
    (dict, "{", "}", dict.items),
    (Counter, "Counter({", "})", dict.items),
    (OrderedDict, "OrderedDict({", "})", OrderedDict.items),
    (defaultdict, "defaultdict(None, {", "})", dict.items),
)
_NAME = type.__dict__["__name__"].__get__
_numerator, _denominator = Fraction.__dict__["_numerator"].__get__, Fraction.__dict__["_denominator"].__get__


class NotLiteral(Exception):
    """A result that is no literal, or none short enough; the message is the line to report."""


def literal(value: object, max_chars: int) -> str:
    """Return the text of a plain value.

    Only exact types count, and they are compared by identity, so no code of the program takes part.

    Raises:
        NotLiteral: a part of ``value`` is of another type, or the text is longer than ``max_chars``.
    """
    text = []
    room = max_chars
    for piece in _pieces(value, max_chars, 0):
        room -= len(piece)
        if room < 0:
            raise NotLiteral("long")
        text.append(piece)
    return "".join(text)


def _pieces(value: Any, max_chars: int, depth: int) -> Iterator[str]:
    kind = type(value)
    if depth > MAX_DEPTH:
        raise NotLiteral("deep")
    for known, start, end in _SEQUENCES:
        if kind is known:
            if (kind is set or kind is frozenset) and not value:
                yield f"{_NAME(kind)}()"
            else:
                yield from _items(
                    start, value, ",)" if kind is tuple and len(value) == 1 else end, max_chars, depth
                )
            return
    for known, start, end, items in _MAPPINGS:
        if kind is known:
            yield from _pairs(start, items(value), end, max_chars, depth)
            return
    yield _atom(value, kind, max_chars)


def _items(start: str, values: Iterable[Any], end: str, max_chars: int, depth: int) -> Iterator[str]:
    yield start
    for index, value in enumerate(values):
        yield ", " if index else ""
        yield from _pieces(value, max_chars, depth + 1)
    yield end


def _pairs(
    start: str, pairs: Iterable[tuple[Any, Any]], end: str, max_chars: int, depth: int
) -> Iterator[str]:
    yield start
    for index, (key, value) in enumerate(pairs):
        yield ", " if index else ""
        yield from _pieces(key, max_chars, depth + 1)
        yield ": "
        yield from _pieces(value, max_chars, depth + 1)
    yield end


def _atom(value: Any, kind: type, max_chars: int) -> str:
    if kind is Fraction:
        parts = _numerator(value), _denominator(value)
        return f"Fraction({', '.join(_atom(part, type(part), max_chars) for part in parts)})"
    if kind is str or kind is bytes:
        fits = len(value) <= max_chars
    elif kind is int:
        fits = value.bit_length() <= 3.33 * max_chars + 1
    elif (
        kind is bool
        or value is None
        or (kind is float and math.isfinite(value))
        or (kind is Decimal and value.is_finite())
    ):
        fits = True
    else:
        raise NotLiteral(f"type {_NAME(kind)}")
    if not fits:
        raise NotLiteral("long")
    return repr(value)
