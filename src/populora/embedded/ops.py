"""The operations that programs of the embedded language are made of.

An operation is one or more statements over the current variable. Templates use these fields:
``{x}`` current variable, ``{n}`` second argument, ``{t}`` a fresh variable, ``{a}`` 1 to 9,
``{b}`` 2 or 3, ``{k}`` 1 to 3, ``{m}`` 3 to 5, ``{l}`` and ``{u}`` letters.
"""

import random
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

Kind = Literal["int", "list", "str"]

LETTERS = "ABCDEF"


@dataclass(frozen=True, slots=True)
class Op:
    """An operation.

    Attributes:
        hints: What each statement does, in a word; a message to a solver is made of these.
        codes: Statement templates.
        out: Type of the current variable afterwards.
        weight: Relative frequency.
        moves: Whether the fresh variable ``{t}`` becomes the current one.
    """

    hints: tuple[str, ...]
    codes: tuple[str, ...]
    out: Kind
    weight: float = 1.0
    moves: bool = False


class Menu:
    """Operations to draw from by weight."""

    def __init__(self, *ops: Op) -> None:
        self._ops = ops
        self._cumulative = tuple(accumulate(op.weight for op in ops))

    def draw(self, rng: random.Random) -> Op:
        """Draws an operation."""
        return rng.choices(self._ops, cum_weights=self._cumulative)[0]


def _op(hint: str, code: str, out: Kind, weight: float = 1.0) -> Op:
    return Op((hint,), (code,), out, weight)


def _fold(start: str, loop: str, out: Kind, weight: float = 1.0) -> Op:
    return Op(("start", "loop"), ("{t} = " + start, loop), out, weight, moves=True)


_IF = "if {x} % 2 == 0:\n    {x} = {x} // 2\nelse:\n    {x} = {x} + {a}"

_INT = Menu(
    _op("add", "{x} = {x} + {a}", "int", 1.5),
    _op("add", "{x} += {a}", "int"),
    _op("subtract", "{x} = {x} - {a}", "int", 1.5),
    _op("subtract", "{x} -= {a}", "int"),
    _op("multiply", "{x} = {x} * {b}", "int", 1.5),
    _op("divide", "{x} = {x} // {b}", "int"),
    _op("remainder", "{x} = {x} % {m}", "int"),
    _op("abs", "{x} = abs({x} - {a})", "int"),
    _op("max", "{x} = max({x}, {a})", "int"),
    _op("min", "{x} = min({x}, {a})", "int"),
    _op("branch", _IF, "int"),
    _op("branch", "if {x} > {a}:\n    {x} = {x} - {k}", "int"),
    _op("branch", "if {x} > {a}:\n    {x} = {x} - {a}\nelse:\n    {x} = {x} + {k}", "int"),
    _op("loop", "for i in range({b}):\n    {x} = {x} + {k}", "int", 0.7),
    _op("loop", "for i in range({m}):\n    {x} += i", "int", 0.7),
    _op("while", "while {x} > {a}:\n    {x} = {x} - {m}", "int", 0.7),
    _op("pair", "{x} = [{x}, {a}]", "list", 0.4),
    _op("range", "{x} = list(range({x}))", "list", 0.4),
    _op("repeat", "{x} = '{l}' * {x}", "str", 0.4),
    Op(("add", "add"), ("{t} = {x} + {k}", "{x} = {x} + {t}"), "int", 0.5),
    Op(("multiply", "subtract"), ("{t} = {x} * {b}", "{x} = {t} - {a}"), "int", 0.5),
)

_LIST = Menu(
    _op("sort", "{x} = sorted({x})", "list", 1.5),
    _op("sort", "{x} = sorted({x}, reverse=True)", "list", 0.7),
    _op("reverse", "{x} = {x}[::-1]", "list"),
    _op("reverse", "{x} = list(reversed({x}))", "list", 0.5),
    _op("map", "{x} = [v + {k} for v in {x}]", "list", 1.5),
    _op("map", "{x} = [v * {b} for v in {x}]", "list"),
    _op("map", "{x} = [v % {m} for v in {x}]", "list", 0.5),
    _op("map", "{x} = [v + i for i, v in enumerate({x})]", "list", 0.4),
    _op("filter", "{x} = [v for v in {x} if v > {k}]", "list"),
    _op("filter", "{x} = [v for v in {x} if v % 2 == 0]", "list"),
    _op("filter", "{x} = [v for v in {x} if v < {a}]", "list", 0.7),
    _op("slice", "{x} = {x}[1:]", "list"),
    _op("slice", "{x} = {x}[:{k}]", "list"),
    _op("slice", "{x} = {x}[::2]", "list", 0.5),
    _op("append", "{x} = {x} + [{a}]", "list"),
    _op("append", "{x} = [{a}] + {x}", "list", 0.5),
    _op("sum", "{x} = sum({x})", "int"),
    _op("length", "{x} = len({x})", "int", 0.7),
    _op("max", "{x} = max({x})", "int", 0.7),
    _op("min", "{x} = min({x})", "int", 0.7),
    _op("count", "{x} = {x}.count({a})", "int", 0.3),
    _op("index", "{x} = {x}[0]", "int", 0.4),
    _op("index", "{x} = {x}[-1]", "int", 0.4),
    _op("branch", "if len({x}) > {k}:\n    {x} = {x}[1:]", "list", 0.7),
    _op("branch", "if {x}[0] > {a}:\n    {x} = {x}[::-1]\nelse:\n    {x} = {x} + [{k}]", "list", 0.7),
    _fold("0", "for v in {x}:\n    {t} += v", "int", 0.8),
    _fold("{a}", "for v in {x}:\n    {t} = max({t}, v)", "int", 0.4),
    _fold("0", "for v in {x}:\n    if v > {a}:\n        {t} += v", "int", 0.4),
    _fold("[]", "for v in {x}:\n    {t}.append(v + {k})", "list", 0.6),
    _fold("[]", "for v in {x}:\n    {t} = [v] + {t}", "list", 0.4),
    Op(("max", "subtract"), ("{t} = max({x})", "{x} = {t} - min({x})"), "int", 0.4),
    Op(("length", "map"), ("{t} = len({x})", "{x} = [v + {t} for v in {x}]"), "list", 0.4),
)

_STR = Menu(
    _op("reverse", "{x} = {x}[::-1]", "str", 1.5),
    _op("slice", "{x} = {x}[1:]", "str"),
    _op("slice", "{x} = {x}[:{k}]", "str"),
    _op("slice", "{x} = {x}[::2]", "str", 0.5),
    _op("append", "{x} = {x} + '{l}'", "str"),
    _op("append", "{x} = '{l}' + {x}", "str"),
    _op("repeat", "{x} = {x} * 2", "str", 0.6),
    _op("replace", "{x} = {x}.replace('{l}', '{u}')", "str", 1.5),
    _op("sort", "{x} = ''.join(sorted({x}))", "str"),
    _op("filter", "{x} = ''.join(c for c in {x} if c != '{l}')", "str", 0.7),
    _op("strip", "{x} = {x}.strip('{l}')", "str", 0.4),
    _op("count", "{x} = {x}.count('{l}')", "int", 0.5),
    _op("length", "{x} = len({x})", "int", 0.8),
    _op("find", "{x} = {x}.find('{l}')", "int", 0.4),
    _op("codes", "{x} = [ord(c) - 65 for c in {x}]", "list", 0.5),
    _op("branch", "if '{l}' in {x}:\n    {x} = {x}[::-1]\nelse:\n    {x} = {x} + '{l}'", "str"),
    _op("branch", "if len({x}) > {m}:\n    {x} = {x}[1:]", "str", 0.7),
    _fold("''", "for c in {x}:\n    {t} = c + {t}", "str", 0.5),
    _fold("''", "for c in {x}:\n    {t} += c + '{l}'", "str", 0.3),
    _fold("0", "for c in {x}:\n    if c == '{l}':\n        {t} += 1", "int", 0.4),
    Op(("index", "append"), ("{t} = {x}[0]", "{x} = {x} + {t}"), "str", 0.4),
)

OPS: dict[Kind, Menu] = {"int": _INT, "list": _LIST, "str": _STR}

OPS_WITH: dict[tuple[Kind, Kind], Menu] = {
    ("int", "int"): Menu(
        _op("add", "{x} = {x} + {n}", "int", 2.0),
        _op("subtract", "{x} = {x} - {n}", "int"),
        _op("multiply", "{x} = {x} * {n}", "int", 0.7),
        _op("max", "{x} = max({x}, {n})", "int"),
        _op("branch", "if {x} > {n}:\n    {x} = {x} - {n}", "int"),
        _op("branch", "if {n} > {a}:\n    {x} = {x} + {n}\nelse:\n    {x} = {x} - {k}", "int"),
        _op("pair", "{x} = [{x}, {n}]", "list", 0.7),
    ),
    ("list", "int"): Menu(
        _op("slice", "{x} = {x}[:{n}]", "list"),
        _op("slice", "{x} = {x}[{n}:]", "list"),
        _op("append", "{x} = {x} + [{n}]", "list"),
        _op("map", "{x} = [v + {n} for v in {x}]", "list", 1.5),
        _op("map", "{x} = [v * {n} for v in {x}]", "list", 0.5),
        _op("filter", "{x} = [v for v in {x} if v > {n}]", "list"),
        _op("count", "{x} = {x}.count({n})", "int", 0.5),
    ),
    ("str", "int"): Menu(
        _op("slice", "{x} = {x}[:{n}]", "str"),
        _op("slice", "{x} = {x}[{n}:]", "str"),
        _op("rotate", "{x} = {x}[{n}:] + {x}[:{n}]", "str"),
        _op("branch", "if len({x}) > {n}:\n    {x} = {x}[1:]", "str"),
    ),
    ("list", "list"): Menu(
        _op("append", "{x} = {x} + {n}", "list", 2.0),
        _op("zip", "{x} = [a + b for a, b in zip({x}, {n})]", "list"),
        _op("filter", "{x} = [v for v in {x} if v not in {n}]", "list"),
    ),
    ("str", "str"): Menu(
        _op("append", "{x} = {x} + {n}", "str"),
        _op("append", "{x} = {n} + {x}", "str"),
        _op("filter", "{x} = ''.join(c for c in {x} if c in {n})", "str"),
    ),
}
