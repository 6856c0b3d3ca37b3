"""Results of programs as text, and back: parsed, never evaluated."""

import ast
from typing import Any

from populora.tasks.syntax import parse

_NAMES = {"inf": float("inf"), "nan": float("nan"), "infj": complex(0, float("inf"))}


class Unreadable:
    """What a text that is no plain value stands for; equal to nothing."""


UNREADABLE = Unreadable()


def read(text: str) -> Any:
    """Return the plain value that a text shows, as ``repr`` writes it; ``UNREADABLE`` where it shows none.

    Plain are None, Ellipsis, bools, numbers with inf, nan and complex ones, strings, bytes, and lists, tuples, sets,
    frozensets and dicts of these.

    Args:
        text: What a program says its result is, of a length the caller has bounded.
    """
    match parse(text):
        case ast.Module(body=[ast.Expr(value=node)]):
            try:
                return value_of(node)
            except (ValueError, TypeError, RecursionError, OverflowError):
                return UNREADABLE
    return UNREADABLE


def value_of(node: ast.expr) -> Any:
    """Return the plain value that an expression shows.

    Raises:
        ValueError, TypeError, OverflowError, RecursionError: it shows none.
    """
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id="Ellipsis"):
            return ...
        case ast.List(elts=items):
            return [value_of(item) for item in items]
        case ast.Tuple(elts=items):
            return tuple(value_of(item) for item in items)
        case ast.Set(elts=items):
            return {value_of(item) for item in items}
        case ast.Dict(keys=keys, values=values):
            return {value_of(_key(key)): value_of(value) for key, value in zip(keys, values, strict=True)}
        case ast.Call(func=ast.Name(id="set"), args=[], keywords=[]):
            return set()
        case ast.Call(func=ast.Name(id="frozenset"), args=arguments, keywords=[]) if len(arguments) < 2:
            return frozenset(*map(value_of, arguments))
    return _number(node)


def _key(node: ast.expr | None) -> ast.expr:
    if node is None:
        raise ValueError("a dict that takes in another is no plain value")
    return node


def _number(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=int() | float() | complex() as value):
            return value
        case ast.Name(id=name) if name in _NAMES:
            return _NAMES[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(operand)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _number(left) + _number(right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _number(left) - _number(right)
    raise ValueError("no plain value")
