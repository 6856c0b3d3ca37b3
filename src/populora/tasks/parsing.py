"""What a response says: its last answer, and the fenced blocks inside.

Every prompt asks for ``<think> … </think><answer> … </answer>`` with fenced blocks in the answer. All readers take
time linear in the text.
"""

from populora.records import Draft
from populora.tasks.literals import canonical_arguments

_ALIASES = {"py": "python", "python3": "python"}


def answer(text: str) -> str | None:
    """Return what stands in the last ``<answer> … </answer>``; None when the response is malformed.

    The thought must be closed by ``</think>`` before that answer (its opening tag may be part of the prompt), and the
    answer must be closed; text after it is ignored.
    """
    before, opened, rest = text.rpartition("<answer>")
    inside, closed, _ = rest.partition("</answer>")
    return inside if opened and closed and "</think>" in before else None


def blocks(text: str, label: str) -> list[str]:
    """Return the bodies of all fenced blocks labelled ``label``, in order.

    A fence is a line of its own, ```` ```label ```` to open and ```` ``` ```` to close; case, surrounding blanks and
    line ends (``\\r\\n``) do not matter, and ``py`` means ``python``. A block that is never closed does not count.
    """
    found: list[str] = []
    tag: str | None = None
    body: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        fence = line.strip()
        if tag is None and fence.startswith("```"):
            tag, body = fence[3:].strip().lower(), []
        elif fence == "```":
            if _ALIASES.get(tag or "", tag) == label:
                found.append("\n".join(body))
            tag = None
        else:
            body.append(line)
    return found


def answer_blocks(text: str, label: str) -> list[str]:
    """Return the non-empty blocks labelled ``label`` in a response's answer, without blank lines around them."""
    bodies = (body.strip("\n") for body in blocks(answer(text) or "", label))
    return [body for body in bodies if body.strip()]


def last_block(text: str, label: str) -> str | None:
    """Return the last of the blocks :func:`answer_blocks` finds; None without any."""
    bodies = answer_blocks(text, label)
    return bodies[-1] if bodies else None


def one_input_draft(task: str, text: str) -> Draft | None:
    """Read a program and one input, each the last block of its label; None when either is missing or unreadable."""
    program = last_block(text, "python")
    arguments = canonical_arguments(last_block(text, "input") or "")
    return Draft(task, program, (arguments,)) if program and arguments else None
