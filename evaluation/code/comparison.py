"""EvalPlus' rules for when a result is right (github.com/evalplus/evalplus, 0.3.1, and its later repair of HumanEval/32).

Results are compared as values read from text, so nothing of a program takes part.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from populora.evaluation.code.values import UNREADABLE, read

RELATIVE_TOLERANCE = 1e-7
FLOAT_TOLERANCE = 1e-6
"""Absolute, where a task with floats as results states none."""

Oracle = Callable[[Sequence[Any], Any, Any, float], bool]
"""Whether a result that differs is right all the same: arguments, expected, result, absolute tolerance."""


@dataclass(frozen=True)
class Rule:
    """How results of one task are compared."""

    tolerance: float = 0.0
    """Absolute; 0 asks for equality, but for floats."""
    as_sets: bool = False
    """Order and repetition do not count."""
    not_none: bool = False
    """All that counts is whether there is a result; a bool says so itself."""
    oracle: Oracle | None = None
    """Accepts more than the expected result."""
    only_oracle: bool = False
    """The oracle decides, whatever is expected."""

    def entry(self, name: str) -> str:
        """Return the expression for what is called, in the program's namespace."""
        return f"lambda *arguments: set({name}(*arguments))" if self.as_sets else name


def first_wrong(
    rule: Rule, inputs: Sequence[Sequence[Any]], expected: Sequence[str], results: Sequence[str]
) -> int | None:
    """Return the index of the first result that is wrong; None where all are right.

    Args:
        rule: The task's.
        inputs: Arguments of each call.
        expected: What the canonical solution returns, as :func:`populora.verifier.harness.described` writes it.
        results: What the program returned, in the same form; there may be fewer, of which the rest is not judged.
    """
    tolerance = rule.tolerance
    for index, (right, given) in enumerate(zip(expected, results, strict=False)):
        if right == given and not rule.only_oracle:
            continue
        if tolerance == 0 and any(_is_floats(_value(text)) for text in expected[: index + 1]):
            tolerance = FLOAT_TOLERANCE  # as there, from the first float on
        if not _is_right(rule, inputs[index], right, given, tolerance):
            return index
    return None


def _is_right(rule: Rule, arguments: Sequence[Any], right: str, given: str, tolerance: float) -> bool:
    expected, result = _value(right), _value(given)
    if result is UNREADABLE:
        return False
    try:
        if rule.only_oracle and rule.oracle:
            return rule.oracle(arguments, expected, result, tolerance)
        if rule.not_none:
            return bool(
                (result if isinstance(result, bool) else result is not None) == (expected is not None)
            )
        return (
            bool(result == expected)
            or bool(rule.oracle and rule.oracle(arguments, expected, result, tolerance))
            or (tolerance != 0 and given[0] == "=" and _is_close(expected, result, tolerance))
        )
    except (TypeError, ValueError, ArithmeticError, RecursionError, AttributeError):
        return False


def _value(text: str) -> Any:
    """Return a result; one of which only a digest is known is an object that equals no other."""
    return object() if text[:1] == "#" else read(text[1:])


def _is_close(expected: Any, result: Any, tolerance: float) -> bool:
    if type(result) is not type(expected):
        return False
    if isinstance(expected, list | tuple) and len(expected) != len(result):
        return False
    with np.errstate(all="ignore"):
        return bool(np.allclose(result, expected, rtol=RELATIVE_TOLERANCE, atol=tolerance))


def _is_floats(value: Any) -> bool:
    if isinstance(value, list | tuple) and value:
        return all(isinstance(item, float) for item in value)
    return isinstance(value, float)


def is_root(arguments: Sequence[Any], expected: Any, result: Any, tolerance: float) -> bool:
    """HumanEval/32: the polynomial is zero at the result; there are many."""
    (coefficients,) = arguments
    value = sum(each * math.pow(result, power) for power, each in enumerate(coefficients))
    return bool(abs(value) <= tolerance)


def anything(arguments: Sequence[Any], expected: Any, result: Any, tolerance: float) -> bool:
    """Mbpp/164: the task does not say what it asks, so any result is right."""
    return True


def zero(arguments: Sequence[Any], expected: Any, result: Any, tolerance: float) -> bool:
    """Mbpp/295: 0 is right too, as another reading of the task has it."""
    return bool(result == 0)


def digit_distance(arguments: Sequence[Any], expected: Any, result: Any, tolerance: float) -> bool:
    """Mbpp/558: the digits' distances may also be summed after padding with zeros."""
    first, second = map(str, arguments)
    width = max(len(first), len(second))
    pairs = zip(first.zfill(width), second.zfill(width), strict=True)
    return bool(result == sum(abs(int(a) - int(b)) for a, b in pairs))


def pyramid_surface(arguments: Sequence[Any], expected: Any, result: Any, tolerance: float) -> bool:
    """Mbpp/581: the height may also be that from the base to the apex."""
    edge, height = arguments
    slant = math.sqrt((edge / 2) ** 2 + height**2)
    return bool(abs(result - round(edge**2 + 2 * edge * slant)) <= tolerance)
