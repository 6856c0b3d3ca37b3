"""Whether an answer is the right one: as text, as numbers, as lists, and at last as algebra.

Algebra can take forever or all memory, so it runs in processes of :mod:`populora.evaluation.mathematics.workers`.
"""

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from populora.evaluation.mathematics import numbers
from populora.evaluation.mathematics.notation import (
    components,
    normalised,
    parts,
    without_name,
    without_unit,
)

_MAX_PARTS = 50
"""Longest list of answers that is compared."""
_BASED = re.compile(r"([0-9A-Fa-f]+)_(?:(\d)|\{\s*(\d+)\s*\})")
_LETTERS = re.compile(r"(?<![\\A-Za-z])[A-Za-z]")
_DECIMAL = re.compile(r"\d*\.(\d+)")


def plainly_equal(gold: str, answer: str, tolerance: float = 0.0) -> bool | None:
    """Compare what can be compared at once: equal texts, words, and numbers.

    Args:
        gold: The right answer, in LaTeX or plain.
        answer: The other one.
        tolerance: Relative difference allowed where the right answer is a decimal.

    Returns:
        None where only a closer look can tell.
    """
    right, given = _bare(normalised(gold), normalised(answer))
    if _key(right) == _key(given):
        return True
    based = _BASED.fullmatch(right)
    if based:
        return based[1] == given
    first, second = numbers.read(right), numbers.read(given)
    if first and second and numbers.equal(first, second, tolerance):
        return True
    if first and second and not ("," in right and "," in given):
        return False
    return False if right.isalpha() and len(right) > 2 else None


def equal(gold: str, answer: str, tolerance: float = 0.0) -> bool:
    """Whether two answers are equal; may not return in finite time.

    Lists are equal when their elements are, in any order; tuples and intervals when their brackets and, in order,
    their components are. Names on the left of an equation, units, and currencies do not count.
    """

    def same(right: str, given: str) -> bool:
        return _same(right, given, tolerance)

    right, given = normalised(gold), normalised(answer)
    if r"\approx" in given and r"\approx" not in right:
        return any(equal(gold, side, tolerance) for side in given.split(r"\approx"))
    return same(right, given) or _same_lists(right, given, same)


def _same_lists(right: str, given: str, same: Callable[[str, str], bool]) -> bool:
    rights, givens = parts(without_name(right)), parts(without_name(given))
    if not rights or not givens or max(len(rights), len(givens)) > _MAX_PARTS:
        return False
    if len(rights) == len(givens) == 1:
        return (rights[0], givens[0]) != (right, given) and same(rights[0], givens[0])
    pair = components(rights[0]) if len(rights) == 1 else None
    if pair is not None:
        return pair[0] == "()" and _all_same(pair[1], givens, same)
    return len(rights) == len(givens) and _matched(rights, givens, same)


def _matched(rights: Sequence[str], givens: Sequence[str], same: Callable[[str, str], bool]) -> bool:
    """Whether elements can be paired off; as equality is transitive, the first partner is as good as any."""
    left = list(givens)
    for right in rights:
        partner = next((given for given in left if same(right, given)), None)
        if partner is None:
            return False
        left.remove(partner)
    return True


def _all_same(rights: Sequence[str], givens: Sequence[str], same: Callable[[str, str], bool]) -> bool:
    return len(rights) == len(givens) and all(map(same, rights, givens))


def _same(right: str, given: str, tolerance: float) -> bool:
    plain = plainly_equal(right, given, tolerance)
    if plain is not None:
        return plain
    bare_right, bare_given = _bare(right, given)
    first, second = components(bare_right), components(bare_given)
    if first and second:
        return first[0] == second[0] and _all_same(first[1], second[1], lambda a, b: _same(a, b, tolerance))
    if _algebraically_equal(bare_right, bare_given, tolerance):
        return True
    whole = (right, given) != (bare_right, bare_given) and "=" in right and "=" in given
    return whole and _algebraically_equal(right, given, tolerance)


def _bare(right: str, given: str) -> tuple[str, str]:
    """Return two normalised answers without the names before and the units behind them."""
    right, given = without_unit(without_name(right), letters=False), without_name(given)
    letters = numbers.read(right) is not None or not _LETTERS.search(right)
    return right, without_unit(given, letters)


def _key(text: str) -> str:
    """Return what equal texts have in common."""
    key = "".join(text.replace("\\", "").split())
    if len(key) == 3 and key[0] + key[2] == "()":
        return key[1]
    return key.casefold() if key.isalpha() and len(key) > 1 else key


def _algebraically_equal(right: str, given: str, tolerance: float) -> bool:
    from math_verify import verify

    gold, answer = _parsed(right), _parsed(given)
    if gold is None or answer is None:
        return False
    if _DECIMAL.search(right + " " + given):
        values = _value(gold), _value(answer)
        if values[0] is not None and values[1] is not None:
            return _close(values[0], values[1], right, given, tolerance)
    return bool(verify(gold, answer, timeout_seconds=None, allow_set_relation_comp=True))


def _parsed(text: str) -> Any:
    """Return an answer as SymPy has it; None where it cannot be read."""
    from math_verify import LatexExtractionConfig, parse

    found = parse(
        f"${text}$",
        extraction_config=[LatexExtractionConfig()],
        fallback_mode="no_fallback",
        parsing_timeout=None,
    )
    return found[0] if found else None


def _value(expression: Any) -> Fraction | None:
    """Return a real number to thirty digits; None for anything else."""
    if not getattr(expression, "is_number", False):
        return None
    value = expression.doit().evalf(30)
    return Fraction(str(value)) if (value.is_Float and value.is_finite) or value.is_Rational else None


def _close(gold: Fraction, answer: Fraction, right: str, given: str, tolerance: float) -> bool:
    """Compare as :func:`populora.evaluation.mathematics.numbers.close` does, decimals told by how they are written."""
    places = [len(digits) for digits in _DECIMAL.findall(given)]
    allowed = tolerance if _DECIMAL.search(right) else None
    return numbers.close(gold, answer, allowed, max(places, default=None))
