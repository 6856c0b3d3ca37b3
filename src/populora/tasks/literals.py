"""Python literals in canonical text: what inputs, outputs and answers are compared as.

=============================================  ======================================================
result of a program                            canonical text
=============================================  ======================================================
``None``, ``bool``, ``int``, ``str``, bytes``  as Python writes them
finite ``float``                               as Python writes it, -0.0 as ``0.0``
``list``, ``tuple``                            ``[1, 2]``, ``(1,)``
``set``, ``frozenset``                         ``{1, 2}``, ``set()``, ``frozenset({1, 2})``; elements sorted
``dict``, ``Counter``                          ``{'a': 1}``, ``Counter({'a': 1})``; keys sorted
``defaultdict``                                ``defaultdict(None, {'a': 1})``; keys sorted, the factory dropped
``OrderedDict``                                ``OrderedDict({'b': 1, 'a': 2})``; its order counts
``deque``                                      ``deque([1, 2])``, its bound dropped
finite ``Decimal``                             ``Decimal('1.5')``, without zeros at its end
``Fraction``                                   ``Fraction(1, 2)``, reduced
=============================================  ======================================================

Nothing else is accepted, and a subclass is something else: nan, inf, complex numbers, ranges, iterators, views.
What Python writes of the same values, ``OrderedDict([('b', 1)])`` or ``deque([1], maxlen=2)``, is read too. Inputs have
the plain types of the first four rows and ``dict``. Text is parsed, never evaluated.
"""

import ast
import math
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

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
    """Text of a literal node; ``exact`` keeps what equality ignores but a program sees, and has plain types alone."""
    if depth(node) > MAX_DEPTH:
        return None
    try:
        text = _render(ast.literal_eval(node if exact else _construct(node)), exact)
    except (
        ValueError,
        TypeError,
        ArithmeticError,
    ):  # not a literal, unhashable, or an int of thousands of digits
        return None
    return text if len(text) <= max_chars else None


def _construct(node: ast.expr) -> ast.expr:
    has_calls = any(isinstance(each, ast.Call) for each in ast.walk(node))
    constructed: ast.expr = _Constructors().visit(node) if has_calls else node
    return constructed


class _Constructors(ast.NodeTransformer):
    """Replaces calls of types that are written as calls by what they construct."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in _CONSTRUCTORS or any(keyword.arg != "maxlen" for keyword in node.keywords):
            return node
        construct, kinds = _CONSTRUCTORS[name]
        arguments = [ast.literal_eval(argument) for argument in node.args[name == "defaultdict" :]]
        if any(type(argument) not in kinds for argument in arguments):
            raise TypeError(f"{name} of {arguments}")
        return ast.Constant(construct(*arguments))


_CONSTRUCTORS: dict[str, tuple[Callable[..., Any], tuple[type, ...]]] = {
    "frozenset": (frozenset, (list, set)),
    "deque": (deque, (list,)),
    "Counter": (Counter, (dict,)),
    "OrderedDict": (OrderedDict, (dict, list)),
    "defaultdict": (partial(defaultdict, None), (dict,)),
    "Decimal": (Decimal, (str, int)),
    "Fraction": (Fraction, (int,)),
}
"""What is called for a name, and what it may be called with; a factory for missing keys is skipped."""


_BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
    deque: ("deque([", "])"),
    dict: ("{", "}"),
    Counter: ("Counter({", "})"),
    OrderedDict: ("OrderedDict({", "})"),
    defaultdict: ("defaultdict(None, {", "})"),
}
_UNORDERED = frozenset({set, frozenset, dict, Counter, defaultdict})


def _render(value: Any, exact: bool) -> str:
    kind = type(value)
    if kind not in _BRACKETS:
        return _render_scalar(value, exact)
    if kind in (set, frozenset) and not value:
        return f"{kind.__name__}()"
    start, end = _BRACKETS[kind]
    if isinstance(value, dict):
        items = [f"{_render(key, exact)}: {_render(item, exact)}" for key, item in value.items()]
    else:
        items = [_render(item, exact) for item in value]
    if kind in _UNORDERED and not (exact and kind is dict):
        items.sort()
    comma = "," if kind is tuple and len(items) == 1 else ""
    return f"{start}{', '.join(items)}{comma}{end}"


def _render_scalar(value: Any, exact: bool) -> str:
    match value:
        case None | bool() | int() | str() | bytes():
            return repr(value)
        case float() if math.isfinite(value):
            return repr(value if value or exact else 0.0)
        case Decimal() if value.is_finite():
            return f"Decimal('{_shortest(value)}')"
        case Fraction():
            return f"Fraction({value.numerator}, {value.denominator})"
    raise ValueError(f"not a literal: {type(value).__name__}")


def _shortest(number: Decimal) -> Decimal:
    """Return the equal number that all equal ones share: no zeros behind the point, few written as an exponent."""
    sign, digits, exponent = number.as_tuple()
    significant = bytes(digits).rstrip(b"\0")
    if not significant:
        return Decimal(0)
    exponent = int(exponent) + len(digits) - len(significant)
    zeros = exponent if 0 < exponent <= 30 else 0
    return Decimal((sign, (*significant, *(0,) * zeros), exponent - zeros))
