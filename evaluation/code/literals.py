"""Finds a predicted output or input in a response, also where it is not quite in the form that was asked for."""

import re
from collections.abc import Callable, Iterator

from populora.tasks.literals import canonical, canonical_arguments
from populora.tasks.parsing import blocks

_TAIL = 20_000
"""Characters at a response's end that are looked at."""
_CALL = re.compile(r"(?:assert\s+)?f\((.*)\)", re.DOTALL)


def find_output(response: str) -> str | None:
    """Return the canonical text of the predicted output, None where there is none."""
    return _find(response, "output", canonical, lambda text: text.rpartition("==")[2])


def find_arguments(response: str) -> str | None:
    """Return the canonical text of the predicted arguments, None where there are none."""
    return _find(response, "input", canonical_arguments, _inside_call)


def _find(
    response: str, label: str, read: Callable[[str], str | None], inner: Callable[[str], str]
) -> str | None:
    text = next(_answers(response[-_TAIL:], label), "").strip()
    return read(text) or read(inner(text).strip())


def _answers(response: str, label: str) -> Iterator[str]:
    """Yield what may be the answer, the best first: a block, what is tagged as the answer, or all of a short response."""
    for begin, end in (("<answer>", "</answer>"), ("[ANSWER]", "[/ANSWER]")):
        _, found, rest = response.rpartition(begin)
        if found:
            inside = rest.partition(end)[0]
            yield from _blocks(inside, label)
            yield inside
    text = response.rpartition("</think>")[2]
    yield from _blocks(text, label)
    if "\n" not in text.strip():
        yield text


def _blocks(text: str, label: str) -> Iterator[str]:
    for name in (label, "python", ""):
        yield from reversed(blocks(text, name))


def _inside_call(text: str) -> str:
    call = _CALL.fullmatch(text.partition("==")[0].strip())
    return call[1] if call else text
