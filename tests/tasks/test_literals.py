import ast
import math
from decimal import Context, Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from populora.tasks.literals import MAX_CHARS, MAX_DEPTH, arguments, canonical, canonical_arguments

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.binary(max_size=8)
)
hashables = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5)
values = st.recursive(
    scalars | st.sets(hashables, max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(hashables, inner, max_size=3)
    ),
    max_leaves=12,
)


def same(left: Any, right: Any) -> bool:
    """Independent oracle: equal, and of equal type at every level; order of dicts and sets is ignored."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, set):
        return len(left) == len(right) and all(any(same(a, b) for b in right) for a in left)
    if isinstance(left, dict):
        return len(left) == len(right) and all(
            any(same(item, other) for other in right.items()) for item in left.items()
        )
    return bool(left == right)


@given(values)
def test_canonical_keeps_the_value_and_is_idempotent(value: Any) -> None:
    text = canonical(repr(value))
    assert text is not None
    assert same(ast.literal_eval(text), value)
    assert canonical(text) == text


@given(values, values)
def test_canonical_agrees_exactly_when_values_and_types_do(left: Any, right: Any) -> None:
    assert (canonical(repr(left)) == canonical(repr(right))) == same(left, right)


@given(st.decimals(allow_nan=False, allow_infinity=False), st.decimals(allow_nan=False, allow_infinity=False))
def test_decimals_have_one_text_exactly_when_they_are_equal(left: Decimal, right: Decimal) -> None:
    for number in (right, left * Decimal("1.000"), left.normalize(Context(prec=200)), -left):
        assert (canonical(repr(left)) == canonical(repr(number))) == (left == number)
    assert eval(str(canonical(repr(left)))) == left


@pytest.mark.parametrize(
    "kind", ["Counter", "OrderedDict", "deque", "Decimal", "Fraction", "frozenset", "defaultdict"]
)
def test_inputs_have_plain_types(kind: str) -> None:
    text = {"Decimal": "Decimal('1')", "Fraction": "Fraction(1, 2)"}.get(kind, f"{kind}()")
    assert canonical(text) is not None
    assert arguments(text) is None


@given(st.lists(values, min_size=1, max_size=4))
def test_arguments_are_what_a_call_would_receive(given_values: list[Any]) -> None:
    text = ", ".join(map(repr, given_values))
    parts = arguments(text)
    assert parts is not None
    assert len(parts) == len(given_values)
    assert all(same(ast.literal_eval(part), value) for part, value in zip(parts, given_values, strict=True))
    joined = canonical_arguments(text)
    assert joined is not None
    assert arguments(joined) == parts
    received = ast.literal_eval(f"[{joined}]")
    assert [list(v) for v in received if type(v) is dict] == [
        list(v) for v in given_values if type(v) is dict
    ]


pieces = st.sampled_from(
    [
        "(", ")", "[", "]", "{", "}", ",", ":", "f(", "1", "-", "0.5", "'a'", '"', "\\", "\n", "#", "*", "=", " or ", "True",
        "\0", "\ud800", "lambda x:", ";", "1e999", "_", "set()", "nan", "None", "j", "x", "\r", "\f", " ",
    ]
)  # fmt: skip


@settings(max_examples=400)
@given(st.text() | st.lists(pieces).map("".join))
def test_no_text_raises_and_whatever_is_read_is_a_plain_literal(text: str) -> None:
    for read in (canonical(text), *(arguments(text) or ())):
        assert read is None or ast.literal_eval(read) is not ...
    joined = canonical_arguments(text)
    assert joined is None or canonical_arguments(joined) == joined


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000, "[" * 5000 + "]" * 5000, "-" * 9000 + "1", "1+" * 4000 + "1", "{" * 9000, "not " * 2000 + "1", "a." * 4000 + "a",
        "'\\" * 4000, "9" * 9000, "0x" + "f" * 9000, "\0", "\ud800", "'\ud800", "f'" + "{" * 500, "if 1:\n" * 200,
    ],
)  # fmt: skip
def test_hostile_text_is_no_literal(text: str) -> None:
    assert canonical(text) is None
    assert arguments(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "", "  \n", "x", "1; 2", "10**10", "1 + 1", "nan", "inf", "1e999", "-1e999", "[1e999]", "1j", "1+2j", "...",
        "[]()", "{[]: 1}", "{{}}", "f'{1}'", "lambda: 1", "[x for x in [1]]", "set([1])", "{**{}}",
        "Decimal('nan')", "Decimal(1.5)", "Decimal('x')", "Fraction(1, 0)", "Fraction('1/2')", "Counter([1])", "Counter(a=1)",
        "Counter(Counter())", "{Counter()}", "Counter", "collections.Counter()", "OrderedDict([1])", "date(2020, 1, 1)",
    ],
)  # fmt: skip
def test_what_is_no_literal(text: str) -> None:
    assert canonical(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" [1,2 ,\n3] # done", "[1, 2, 3]"),
        ("Counter({'b': 1, 'a': 2})", "Counter({'a': 2, 'b': 1})"),
        ("Counter()", "Counter({})"),
        ("OrderedDict([('b', 1), ('a', 2)])", "OrderedDict({'b': 1, 'a': 2})"),
        ("OrderedDict({'b': 1, 'a': 2})", "OrderedDict({'b': 1, 'a': 2})"),
        ("defaultdict(int, {2: 1, 1: 1})", "defaultdict(None, {1: 1, 2: 1})"),
        ("deque([1, 2], maxlen=3)", "deque([1, 2])"),
        ("frozenset({2, 1})", "frozenset({1, 2})"),
        ("frozenset()", "frozenset()"),
        ("Fraction(2, -4)", "Fraction(-1, 2)"),
        ("[Counter({1: [Decimal('2.0')]})]", "[Counter({1: [Decimal('2')]})]"),
        ("Decimal('-0.00')", "Decimal('0')"),
        ("Decimal('1E-999999')", "Decimal('1E-999999')"),
        ('"it\'s"', '"it\'s"'),
        ("'a' 'b'", "'ab'"),
        ("0x1F", "31"),
        ("1_000", "1000"),
        ("1, 2", "(1, 2)"),
        ("+3", "3"),
        ("-0.0", "0.0"),
        ("{1: -0.0, 0: 1}", "{0: 1, 1: 0.0}"),
        ("{3, 1, 2}", "{1, 2, 3}"),
        ("set()", "set()"),
        ("{}", "{}"),
        ("(1,)", "(1,)"),
        ("1e2", "100.0"),
        ("'\\u00e9'", "'é'"),
    ],
)
def test_canonical_text_by_hand(text: str, expected: str) -> None:
    assert canonical(text) == expected


def test_one_true_and_one_point_zero_all_differ() -> None:
    texts = [canonical(f"[{text}]") for text in ("1", "True", "1.0", "'1'", "(1,)", "{1}", "b'1'")]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize(
    "text",
    [
        "0) or (True", "1)(2", "1), f(2", "1); f(2", "1)\nf(2", "1) #", "1)\n#", "*[1, 2]", "x=1", "**{}", "", " ", ",",
        "a", "1 + 1", "f(1)", "y := 1", "x for x in [1]", "1, x=2", "lambda: 1", "1e999", "1 if True else 2", "__import__('os')",
    ],
)  # fmt: skip
def test_text_that_is_more_or_less_than_arguments_is_rejected(text: str) -> None:
    assert arguments(text) is None
    assert canonical_arguments(text) is None


def test_arguments_by_hand() -> None:
    assert arguments("[1,2], {'b':1,'a':2},\n -0.0, # last") == ("[1, 2]", "{'b': 1, 'a': 2}", "-0.0")
    assert canonical_arguments("(1,2)") == "(1, 2)"
    assert canonical_arguments("1,2") == "1, 2"
    assert math.copysign(1, ast.literal_eval(canonical_arguments("-0.0") or "")) == -1


def test_length_is_capped_on_what_is_read_and_on_what_is_returned() -> None:
    assert canonical("'abc'", max_chars=5) == "'abc'"
    assert canonical("'abcd'", max_chars=5) is None
    assert canonical("'\\x00'", max_chars=6) == "'\\x00'"
    assert canonical("'\x01\x02'", max_chars=6) is None
    assert canonical_arguments("1,2", max_chars=3) is None
    assert canonical("1" + " " * MAX_CHARS) is None


def test_depth_is_capped_whatever_the_stack() -> None:
    deepest = MAX_DEPTH + 1
    assert canonical("[" * deepest + "]" * deepest) == "[" * deepest + "]" * deepest
    assert canonical("[" * (deepest + 1) + "]" * (deepest + 1)) is None
