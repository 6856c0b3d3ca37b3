"""Values are read from what ``repr`` writes, and from nothing else."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from populora.evaluation.code.values import UNREADABLE, read

ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.complex_numbers(allow_nan=False, allow_infinity=False),
    st.text(),
    st.binary(),
)
KEYS = st.one_of(st.integers(), st.text(), st.tuples(st.booleans(), st.floats(allow_nan=False)))
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner),
        st.lists(inner).map(tuple),
        st.sets(KEYS),
        st.frozensets(KEYS),
        st.dictionaries(KEYS, inner),
    ),
    max_leaves=20,
)


def types(value: object) -> object:
    """Return a value's type, and those of what it holds."""
    if isinstance(value, list | tuple):
        return type(value), [types(item) for item in value]
    if isinstance(value, dict):
        return dict, [(types(key), types(item)) for key, item in value.items()]
    return type(value)


@given(VALUES)
def test_what_repr_writes_is_read_back(value):
    found = read(repr(value))
    assert found == value
    assert types(found) == types(value)


def test_reads_nan_and_infinities():
    assert math.isnan(read("nan"))
    assert read("[Ellipsis, ...]") == [..., ...]
    assert read("[inf, -inf, (1-2j), -0.5]") == [math.inf, -math.inf, 1 - 2j, -0.5]


@pytest.mark.parametrize(
    "text",
    [
        "", "1 +", "x", "print(1)", "__import__('os')", "[i for i in (1,)]", "{**{}}", "{[]: 1}", "{1, []}", "f'{1}'",
        "1; 2", "'a' + 'b'", "[1] + [2]", "2 ** 9", "not 1", "lambda: 1", "set([1])", "frozenset({1}, {2})",
        "(" * 5000 + ")" * 5000, "-" * 5000 + "1", "array([1, 2])", "[*[1]]",
    ],
)  # fmt: skip
def test_other_text_is_unreadable_and_equals_nothing(text):
    found = read(text)
    assert found is UNREADABLE
    assert found not in (None, text, ..., True)
