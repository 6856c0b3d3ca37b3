"""Numbers as answers write them, compared exactly."""

import re
from dataclasses import dataclass
from fractions import Fraction

MIN_DIGITS = 6
"""Significant digits from which a decimal may stand for the fraction or expression that it rounds."""
_MAX_SIZE = 2000
"""Longest number in characters, and largest exponent of ten, that counts as one."""
_INTEGER = r"(?:\d{1,3}(?:,\d{3})+|\d+)"
_DECIMAL = rf"(?:{_INTEGER}?\.\d+|{_INTEGER}\.?)"
_PLAIN = re.compile(_DECIMAL)
_POWER = re.compile(
    rf"(?:(?P<value>{_DECIMAL})\s*(?:[eE]|(?:\\times|\\cdot|\*|x)\s*10\s*(?:\^|\*\*)\s*)|10\s*(?:\^|\*\*)\s*)"
    r"[{(]?(?P<exponent>[-+]?\d+)[})]?"
)
_FRACTION = re.compile(rf"(?:(?P<whole>\d+)\s+)?(?P<above>-?{_DECIMAL})\s*/\s*(?P<below>-?{_DECIMAL})")
_BRACED = re.compile(rf"\\frac\s*\{{\s*(-?{_DECIMAL})\s*\}}\s*\{{\s*(-?{_DECIMAL})\s*\}}")


@dataclass(frozen=True)
class Number:
    """A number and how it was written."""

    value: Fraction
    places: int | None = None
    """Decimal places of a decimal, less its exponent of ten; None for an integer or fraction, which are exact."""
    percent: bool = False


def read(text: str) -> Number | None:
    """Return the number that a normalised answer is; None if it is none, or one of absurd size."""
    if len(text) > _MAX_SIZE:
        return None
    percent = text.endswith("%")
    body = _BRACED.sub(r" \1/\2", text.removesuffix("%")).strip()
    negative = body.startswith("-")
    number = _read(body.removeprefix("-").removeprefix("+").strip())
    if number is None:
        return None
    return Number(-number.value if negative else number.value, number.places, percent)


def _read(text: str) -> Number | None:
    if _PLAIN.fullmatch(text):
        return Number(_value(text), len(text.partition(".")[2]) or None)
    if power := _POWER.fullmatch(text):
        exponent, value = int(power["exponent"]), power["value"] or ""
        if abs(exponent) > _MAX_SIZE:
            return None
        places = len(value.partition(".")[2]) - exponent if value else None
        return Number(_value(value or "1") * Fraction(10) ** exponent, places)
    if fraction := _FRACTION.fullmatch(text):
        below = _value(fraction["below"])
        return Number(_value(fraction["whole"] or "0") + _value(fraction["above"]) / below) if below else None
    return None


def _value(written: str) -> Fraction:
    return Fraction(written.replace(",", "").removesuffix("."))


def equal(gold: Number, answer: Number, tolerance: float = 0.0) -> bool:
    """Whether two numbers are the same; a percent sign may be missing on one side.

    Args:
        gold: The right one.
        answer: The other one.
        tolerance: Relative difference allowed where the right one is written with decimals.
    """
    allowed = None if gold.places is None else tolerance
    if close(gold.value, answer.value, allowed, answer.places):
        return True
    right, given = (number.value / (100 if number.percent else 1) for number in (gold, answer))
    return gold.percent != answer.percent and close(right, given, allowed, answer.places)


def close(right: Fraction, given: Fraction, tolerance: float | None, places: int | None) -> bool:
    """Whether a value is the right one, within a tolerance, or its rounding to enough digits.

    Args:
        right: The right value.
        given: The other one.
        tolerance: Relative difference allowed; None where the right value is exact.
        places: Decimal places of the other one; None where it is exact.
    """
    if right == given:
        return True
    if tolerance is not None:
        return abs(right - given) <= Fraction(tolerance) * abs(right)
    if places is None or right.denominator == 1:
        return False
    unit = Fraction(10) ** -places
    return abs(given) >= unit * 10 ** (MIN_DIGITS - 1) and abs(right - given) <= unit / 2
