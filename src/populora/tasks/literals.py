"""Python literals in canonical text: what inputs, outputs and answers are compared as.

A literal is None, a bool, int, float, str or bytes, or a list, tuple, set or dict of literals. Complex numbers,
nan, inf and Ellipsis are none. Text is parsed, never evaluated.
"""

import ast
import math

from populora.tasks.syntax import depth, parse

MAX_CHARS = 10_000
"""Longest text that is parsed at all."""
MAX_DEPTH = 64
"""Deepest syntax tree that is accepted, so that no verdict depends on the recursion limit of the moment."""


def canonical(text: str, max_chars: int = MAX_CHARS) -> str | None:
    """Return the canonical text of a literal, None when ``text`` is not one.

    Two literals have the same canonical text exactly when they are equal and of the same type at every level:
    1, True and 1.0 differ, [1] and (1,) differ; sets and dicts are sorted by the canonical text of their
    elements and keys, because their equality ignores order; -0.0 is written 0.0, because the two are equal.

    Args:
        text: Anything a model or a sandbox wrote.
        max_chars: Longer texts, and longer results, are not literals.
    """
    tree = parse(text.strip()) if len(text) <= max_chars else None
    match tree:
        case ast.Module(body=[ast.Expr(value=node)]):
            return _literal(node, max_chars, exact=False)
    return None


def arguments(text: str, max_chars: int = MAX_CHARS) -> tuple[str, ...] | None:
    """Split the text between the parentheses of a call into one literal text per argument.

    The order of dict items and the sign of -0.0 are kept, since a program can see them; sets are sorted.

    Args:
        text: For example ``[1, 2], 3``.
        max_chars: Longer texts, and longer arguments, are rejected.

    Returns:
        None when ``text`` is anything but one or more positional literals: ``1), f(2``, ``0) or (True``,
        ``1)(2``, ``*[1]``, ``x=1``, ``a + 1`` and the empty text.
    """
    tree = parse(f"f(\n{text}\n)") if len(text) <= max_chars else None
    match tree:
        case ast.Module(body=[ast.Expr(value=ast.Call(func=ast.Name(id="f"), args=nodes, keywords=[]))]):
            literals = [_literal(node, max_chars, exact=True) for node in nodes]
            found = tuple(literal for literal in literals if literal is not None)
            return found if found and len(found) == len(nodes) else None
    return None


def canonical_arguments(text: str, max_chars: int = MAX_CHARS) -> str | None:
    """Return the arguments joined by ``, ``: ``[1, 2], 3``; None where :func:`arguments` returns None."""
    parts = arguments(text, max_chars)
    joined = ", ".join(parts or ())
    return joined if parts and len(joined) <= max_chars else None


def _literal(node: ast.expr, max_chars: int, exact: bool) -> str | None:
    """Text of a literal node; ``exact`` keeps what equality ignores but a program sees."""
    if depth(node) > MAX_DEPTH:
        return None
    try:
        text = _render(ast.literal_eval(node), exact)
    except (ValueError, TypeError):  # not a literal, unhashable, or an int of thousands of digits
        return None
    return text if len(text) <= max_chars else None


def _render(value: object, exact: bool) -> str:
    match value:
        case None | bool() | int() | str() | bytes():
            return repr(value)
        case float() if math.isfinite(value):
            return repr(value if value or exact else 0.0)
        case list():
            return f"[{', '.join(_render(item, exact) for item in value)}]"
        case tuple():
            items = [_render(item, exact) for item in value]
            return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
        case set():
            return f"{{{', '.join(sorted(_render(item, exact) for item in value))}}}" if value else "set()"
        case dict():
            pairs = [(_render(key, exact), _render(item, exact)) for key, item in value.items()]
            return f"{{{', '.join(f'{key}: {item}' for key, item in (pairs if exact else sorted(pairs)))}}}"
    raise ValueError(f"not a literal: {type(value).__name__}")
