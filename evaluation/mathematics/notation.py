"""Brings answers to one notation, and takes lists of them apart."""

import re

_SYMBOLS = {
    "−": "-", "–": "-", "×": r"\times ", "·": r"\cdot ", "÷": "/", "π": r"\pi ", "∞": r"\infty ", "√": r"\sqrt ",
    "≤": r"\leq ", "≥": r"\geq ", "∪": r"\cup ", "∈": r"\in ", "°": "", "±": r"\pm ", "θ": r"\theta ", "≈": r"\approx ",
    "²": "^2", "³": "^3", "\u00a0": " ", "，": ",",
}  # fmt: skip
_REWRITES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r",\s*\\!\s*", ","),
        (r"\bnp\.(?=[a-z])", r"\\"),
        (r"\\(?:displaystyle|textstyle|limits|left|right|[bB]igg?[lr]?|,|!|;|:|>|q?quad)(?![A-Za-z])", ""),
        (r"\\[()\[\]]|(?<!\\)\$|\*\*", ""),
        (r"\\\$|[$€£¥]", ""),
        (r"\\%", "%"),
        (r"\\[dtc]frac(?![A-Za-z])", r"\\frac"),
        (r"\{,\}", ","),
        (r"\\geqslant|\\geq?(?![A-Za-z])", r"\\geq "),
        (r"\\leqslant|\\leq?(?![A-Za-z])", r"\\leq "),
        (r"\^\s*\{?\s*(?:\\circ|\\degree)\s*\}?|\\(?:circ|degree)(?![A-Za-z])", ""),
        (r"\\(?:text|mbox|textbf|textit|textrm|mathrm|mathbf|operatorname)\s*\{\s*(?:and|or)\s*\}", ","),
        (r"(?<=[\s\d$)\]}]),?\s*\b(?:and|or)\b\s", ", "),
        (r"\\(?:text|mbox|textbf|textit|textrm|mathrm|mathbf|boxed)\s*\{([^{}]*)\}", r" \1 "),
        (r"\\sqrt\s*([0-9a-zA-Z])", r"\\sqrt{\1}"),
        (r"\\frac\s*([0-9a-zA-Z])\s*([0-9a-zA-Z])", r"\\frac{\1}{\2}"),
        (r"\\frac\s*([0-9a-zA-Z])\s*\{", r"\\frac{\1}{"),
        (r"(\\frac\s*\{[^{}]*\})\s*([0-9a-zA-Z])", r"\1{\2}"),
        (r"_\s*\{\s*(\w)\s*\}", r"_\1"),
        (r"\\(?=\s)|~", " "),
    )
)
_WORD = r"(?!(?:pi|sqrt|frac|sin|cos|tan|log|ln|exp|inf|infinity|theta)\b)[a-zA-Z]{2,}(?![a-zA-Z])"
_VALUE, _POWER = r"(?P<value>.*(?:[\d)}\]%]|\\pi))", r"(?:\s*\^\s*\{?\s*-?\d\s*\}?)?"
_WORDS = re.compile(rf"{_VALUE}\s*(?:{_WORD}{_POWER}[./\s]*)+", re.DOTALL)
_UNITS = re.compile(rf"{_VALUE}\s*(?:(?:{_WORD}|[mgsNJWVAKLCFTh]\b){_POWER}[./\s]*)+", re.DOTALL)
_NAME = r"(?:\\[A-Za-z]+|[A-Za-z])'*(?:\s*_\s*(?:\{[^{}]*\}|\w))?"
_ASSIGNED = re.compile(
    rf"\s*(?:\\angle[\sA-Z_\d{{}}]+|{_NAME}(?:\s*\(\s*{_NAME}(?:\s*,\s*{_NAME})*\s*\))?)\s*"
    r"(?:(?<![<>!])=(?!=)|\\in(?![a-z]))"
)
_EQUALS = re.compile(r"(?<![<>!\\=])=(?!=)")
_OPENING, _CLOSING = "([{", ")]}"


def normalised(text: str) -> str:
    """Return an answer without dollars, sizes, fonts, degrees and currencies, and with fractions in braces."""
    for symbol, command in _SYMBOLS.items():
        text = text.replace(symbol, command)
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    return " ".join(text.split()).rstrip(" .,;:").lstrip(" ,;:")


def without_unit(text: str, letters: bool) -> str:
    """Return a quantity without the words that follow it, and, if ``letters``, without units of one letter."""
    match = (_UNITS if letters else _WORDS).fullmatch(text)
    return match["value"].strip() if match else text


def without_name(text: str) -> str:
    """Return the right side of ``x = …``, ``f(x) = …``, ``x \\in …``, and of a chain of equations its end."""
    match = _ASSIGNED.match(text)
    if match is None:
        return text
    rest = text[match.end() :]
    sides = _EQUALS.split(rest)
    return text if len(sides) > 1 and len(split(rest)) > 1 else sides[-1].strip()


def parts(text: str) -> list[str]:
    """Return the answers of a list, ``\\{…\\}`` or bare, with both values of each ``\\pm``."""
    inner = re.fullmatch(r"\\\{(.*)\\\}|\{(.*)\}", text.strip())
    listed = split(next(g for g in inner.groups() if g is not None) if inner else text)
    return [value for part in listed for value in _both(part)]


def split(text: str) -> list[str]:
    """Split at commas and semicolons outside of brackets."""
    found, depth, start = [], 0, 0
    for position, character in enumerate(text):
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        elif character in ",;" and depth <= 0:
            found.append(text[start:position])
            start = position + 1
    return [part.strip() for part in [*found, text[start:]] if part.strip()]


def components(text: str) -> tuple[str, list[str]] | None:
    """Return the brackets of a tuple or interval and what stands between its commas; None for anything else."""
    text = text.strip()
    if len(text) < 2 or text[0] not in "([" or text[-1] not in ")]" or _closes(text) != len(text) - 1:
        return None
    inner = split(text[1:-1])
    return (text[0] + text[-1], inner) if len(inner) > 1 else None


def _closes(text: str) -> int:
    """Return where the bracket at the beginning closes; intervals may open and close with different ones."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character in _OPENING) - (character in _CLOSING)
        if depth == 0:
            return position
    return -1


def _both(part: str) -> list[str]:
    return [part.replace("\\pm", "+", 1), part.replace("\\pm", "-", 1)] if part.count("\\pm") == 1 else [part]
