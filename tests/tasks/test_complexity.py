import pytest
from hypothesis import given
from hypothesis import strategies as st

from populora.tasks.complexity import Complexity, descriptors, measure

STRAIGHT = "def f(x):\n    return x"
BRANCHES = '''
# a comment
def f(items, limit=3):
    """Docstring."""
    total = 0

    for i, item in enumerate(items):       # +1
        if item > limit and i % 2:         # +1 +1
            total += item
        elif item < 0 or i == 0 or total:  # +1 +2
            continue
        else:
            total = total if total else 1  # +1
    while total > 100:                     # +1
        total //= 2
    try:
        assert total                       # +1
    except (ValueError, AssertionError) as error:  # +1
        return str(error)
    return [a for b in items if b for a in b if a if a > 1]  # +2 loops +3 ifs
'''
MATCH = """
class Point:
    def area(self, *sides, **names):
        return sum(s for s in sides)
def f(x):
    match x:
        case [first, *rest] if rest:
            return first
        case {"a": a, **others} | {"b": a, **others}:
            return a
        case Point() as p:
            return p
        case y:
            return (z := lambda q: q)(y)
"""


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        # Below the module: def, return, name.
        (STRAIGHT, Complexity(ast_depth=3, cyclomatic=1, lines=2, variables=1)),
        # Deepest: def, for, if, elif, or, comparison, name; or def, for, if, elif, assignment, ternary, name.
        (BRANCHES, Complexity(ast_depth=7, cyclomatic=16, lines=17, variables=8)),
        # Deepest: def, match, case, return, call, walrus, lambda, arguments, q.
        # 1 + generator + 3 refutable cases + guard.
        (MATCH, Complexity(ast_depth=9, cyclomatic=6, lines=13, variables=13)),
        ("", Complexity(ast_depth=0, cyclomatic=1, lines=0, variables=0)),
    ],
)
def test_measures_counted_by_hand(program: str, expected: Complexity) -> None:
    assert measure(program) == expected


@pytest.mark.parametrize(
    ("expression", "decisions"),
    [
        ("a and b and c", 2),
        ("a and (b or c)", 2),
        ("a if b else c", 1),
        ("[a for a in b]", 1),
        ("{a: b for a in b if a for b in a}", 3),
        ("lambda: a", 0),
        ("not a", 0),
        ("a < b < c", 0),
    ],
)
def test_decisions_of_an_expression(expression: str, decisions: int) -> None:
    measured = measure(f"x = {expression}")
    assert measured is not None
    assert measured.cyclomatic == 1 + decisions


def test_each_level_of_nesting_adds_one_to_the_depth() -> None:
    depths = [measured.ast_depth for n in range(5) if (measured := measure("x = " + "[" * n + "1" + "]" * n))]
    assert depths == [2, 3, 4, 5, 6]


def test_descriptors_measure_programs_within_increasing_bounds() -> None:
    assert {name: descriptors[name](BRANCHES) for name in descriptors} == {
        "ast_depth": 7.0,
        "cyclomatic": 16.0,
        "lines": 17.0,
        "variables": 8.0,
    }
    for name in descriptors:
        straight = descriptors[name](STRAIGHT)
        assert straight is not None
        assert descriptors[name].low <= straight < descriptors[name].high
        assert descriptors[name]("def f(:") is None


@given(
    st.text()
    | st.lists(st.sampled_from(["(", "if ", ":", "x", "\n", " ", "for ", "=", "1", "\0", "-"])).map("".join)
)
def test_no_text_raises(program: str) -> None:
    assert (measure(program) is None) == (descriptors["lines"](program) is None)


@pytest.mark.parametrize("program", ["not " * 2000 + "1", "x = " + "+".join("1" * 900), "if x:\n pass\n" + "elif x:\n pass\n" * 300])  # fmt: skip
def test_deep_programs_are_measured(program: str) -> None:
    measured = measure(program)
    assert measured is not None
    assert measured.ast_depth > 300


def test_too_deep_for_the_parser_is_none() -> None:
    assert measure("-" * 100_000 + "1") is None
