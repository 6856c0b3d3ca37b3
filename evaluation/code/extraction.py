"""Finds the program in a response."""

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from populora.tasks.syntax import parse

MAX_CHARS = 200_000
"""Longest response that is looked at."""
_FENCE = re.compile(r"^([ \t]*+)(`{3,}+|~{3,}+)[ \t]*+([^\s`{]*+)[^\n`]*+$", re.MULTILINE)
_PYTHON = frozenset({"", "py", "python", "python3", "py3"})
_CODE = re.compile(r"^(?:(?:def|class|import|from|async)\b|@)", re.MULTILINE)
_UNFENCED, _STARTS, _CUTS = 50_000, 5, 10
"""Most characters, beginnings and ends that are tried where no fence says what is code."""


@dataclass(frozen=True)
class Extraction:
    """The program that a response gives."""

    program: str
    """Empty where there is none."""
    reason: str = ""
    """Why there is none."""


def extract(response: str, entry: str | None = None, stop: Sequence[str] = ()) -> Extraction:
    """Return the program in a response.

    A response that is Python as a whole is the program. Otherwise reasoning that ends with ``</think>`` is left out,
    and all but the last ``<answer>`` where there is one; in what remains the last Python block that defines
    ``entry`` counts, else the last Python block. Without any block, the program is the text from its first line of
    code up to its first error.

    Args:
        response: What a model wrote, after the beginning it was given.
        entry: The function or class that the program has to define, if any.
        stop: Texts that ended the response and are no part of the program.
    """
    if not response.strip():
        return Extraction("", "empty response")
    if len(response) > MAX_CHARS:
        return Extraction("", f"huge response: {len(response):,} characters")
    end = next((text for text in stop if response.endswith(text)), "")
    response = response.removesuffix(end).replace("\r\n", "\n")
    if parse(response):
        return Extraction(response)
    text = _answer(response)
    blocks = list(_blocks(text))
    if not blocks:
        program = _unfenced(text)
        return Extraction(program, "" if program else "no program")
    ours = [body for label, body in blocks if label in _PYTHON and body.strip()]
    if not ours:
        return Extraction("", f"no program in Python, but in {blocks[-1][0][:20] or 'none'}")
    return Extraction(next((body for body in reversed(ours) if _defines(body, entry)), ours[-1]))


def _answer(text: str) -> str:
    _, found, rest = text.rpartition("</think>")
    text = rest if found and rest.strip() else text
    _, found, rest = text.rpartition("<answer>")
    return rest.partition("</answer>")[0] if found and rest.strip() else text


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield label and body of each fenced block; another opening fence or the end of the text closes an open block."""
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened and not fence[3] and not fence[2].startswith(opened[2]):
            continue
        if opened:
            yield _block(opened, text[opened.end() + 1 : fence.start()])
        opened = None if opened and not fence[3] else fence
    if opened:
        yield _block(opened, text[opened.end() + 1 :])


def _block(fence: re.Match[str], body: str) -> tuple[str, str]:
    return fence[3].lower(), textwrap.dedent(body) if fence[1] else body


def _defines(program: str, entry: str | None) -> bool:
    if entry is None:
        return False
    name = re.escape(entry)
    return bool(re.search(rf"^(?:async def|def|class) +{name}\b|^{name} *=", program, re.MULTILINE))


def _unfenced(text: str) -> str:
    """Return the text from a line of code up to its first error."""
    for start in islice(_CODE.finditer(text), _STARTS):
        lines = text[start.start() :][:_UNFENCED].split("\n")
        for _ in range(_CUTS):
            error = _error_line("\n".join(lines)) if lines else None
            if error is None:
                break
            lines = lines[: min(error, len(lines)) - 1]
        else:
            lines = []
        if lines:
            return "\n".join(lines)
    return ""


def _error_line(program: str) -> int | None:
    """Return the line of a program's first error, None where there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(program)
        except SyntaxError as error:
            return error.lineno or 1
        except (ValueError, MemoryError, RecursionError):
            return 1
    return None
