"""Finds the final answer in a response."""

import re
from dataclasses import dataclass

MAX_ANSWER = 2000
"""Characters of an answer; what is longer is none."""
_TAIL = 20_000
"""Characters at a response's end in which an answer that is not marked is looked for."""
_MAX_BOXES = 50
"""Boxes looked at, from the end."""
_STATED = re.compile(
    r"\banswers?\b[^\n.:=]{0,80}?(?:\bis\b|\bare\b|[:=])[ \t*:]*\n?[ \t*]*|^[ \t*]*A:[ \t*]*",
    re.IGNORECASE | re.MULTILINE,
)
_FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<!\\)\$(.+?)(?<!\\)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)
_NUMBER = re.compile(r"(?:(?<![\w)\]}])[-−])?\$?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:/\d+)?(?:\s?\\?%)?")
_CONNECTORS = re.compile(r"(?:[\s,;$*]|\band\b|\bor\b|\\text\{\s*(?:and|or)\s*\}|\\q?quad|\\[()\[\]])*")


@dataclass(frozen=True)
class Extraction:
    """What a response gives as its answer."""

    answer: str
    """Empty where there is none."""
    reason: str = ""
    """Why there is none."""


def extract(response: str) -> Extraction:
    """Return a response's final answer.

    Reasoning that ends with ``</think>`` is left out, and all but the last ``<answer>`` tag where there is one. In
    what remains, the last ``\\boxed`` counts, else what follows the last ``####``, else what follows the last
    ``answer is``, ``answer:`` or ``A:``, else all of the tag, else the last formula or number.
    """
    tagged = _tagged(_after_reasoning(response))
    text = _after_reasoning(response) if tagged is None else tagged
    boxed = _boxed(text)
    if boxed == "":
        return Extraction("", "no answer: \\boxed is empty or never closed")
    answer = boxed or _marked(text) or _stated(text) or (tagged or "").strip() or _last(text)
    if not answer:
        return Extraction("", "no answer")
    if len(answer) > MAX_ANSWER:
        return Extraction("", f"no answer: what looks like one has {len(answer):,} characters")
    return Extraction(answer)


def _after_reasoning(response: str) -> str:
    _, found, rest = response.rpartition("</think>")
    return rest if found and rest.strip() else response


def _tagged(text: str) -> str | None:
    _, found, rest = text.rpartition("<answer>")
    return rest.partition("</answer>")[0] if found else None


def _boxed(text: str) -> str | None:
    """Return the content of the last ``\\boxed`` that is closed, and of those joined to it by a comma or ``and``.

    None where there is none at all, empty where none is closed.
    """
    found: list[str] = []
    begin = command = len(text)
    for _ in range(_MAX_BOXES):
        command = text.rfind("\\boxed", 0, command)
        if command < 0:
            break
        content, end = _braced(text, command + len("\\boxed"))
        if content is None or (found and not _CONNECTORS.fullmatch(text[end:begin])):
            if found:
                break
        else:
            found.insert(0, content)
            begin = command
    return ", ".join(found) if found else ("" if "\\boxed" in text else None)


def _braced(text: str, position: int) -> tuple[str | None, int]:
    """Return what stands between the brace at a position and its partner, and where that ends."""
    depth = 0
    start = position
    for match in re.compile(r"\\.|[{}]|\S", re.DOTALL).finditer(text, position, position + 2 * MAX_ANSWER):
        symbol = match.group()
        if depth == 0 and symbol != "{":
            return symbol, match.end()
        if depth == 0:
            start = match.end()
        depth += {"{": 1, "}": -1}.get(symbol, 0)
        if depth == 0:
            return text[start : match.start()].strip() or None, match.end()
    return None, position


def _marked(text: str) -> str:
    return _tidy(text.rpartition("####")[2].lstrip().partition("\n")[0]) if "####" in text else ""


def _stated(text: str) -> str:
    text = text[-_TAIL:]
    *_, end = [-1, *(match.end() for match in _STATED.finditer(text))]
    return "" if end < 0 else _tidy(text[end:].partition("\n")[0])


def _last(text: str) -> str:
    line = text[-_TAIL:].rstrip().rpartition("\n")[2]
    formulas = list(_FORMULA.finditer(line))
    if formulas:
        return _joined(line, formulas)
    numbers = _NUMBER.findall(text[-_TAIL:])
    return numbers[-1].strip(",") if numbers else ""


def _tidy(line: str) -> str:
    """Return the answer at the beginning of a line that may say more about it."""
    line = line.strip().strip("*").strip()
    formulas = list(_FORMULA.finditer(line))
    if formulas:
        return _joined(line, formulas)
    number = _NUMBER.match(line)
    if number and re.match(r"\s+(?!and\b|or\b)[a-z]{2,}", line[number.end() :], re.IGNORECASE):
        return number.group()
    return re.split(r"[.;](?=\s|$)|,(?=\s+(?:so|because|since|which|where)\b)", line)[0].strip("* ")


def _joined(line: str, formulas: list[re.Match[str]]) -> str:
    """Return the last formula of a line, and those joined to it by a comma or ``and``."""
    found = [formulas[-1]]
    for formula in reversed(formulas[:-1]):
        if not _CONNECTORS.fullmatch(line[formula.end() : found[0].start()]):
            break
        found.insert(0, formula)
    return ", ".join(next(group for group in formula.groups() if group).strip() for formula in found)
