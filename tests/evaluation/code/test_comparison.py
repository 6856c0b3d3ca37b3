"""EvalPlus' rules, each against what its own comparison says of the same pair."""

import math

import pytest

from populora.evaluation.code.comparison import (
    Rule,
    anything,
    digit_distance,
    first_wrong,
    is_root,
    pyramid_surface,
    zero,
)
from populora.verifier.harness import described

EXACT = Rule()


def right(rule: Rule, expected: object, result: object, *arguments: object) -> bool:
    texts = ((described(value),) for value in (expected, result))
    return first_wrong(rule, [arguments], *texts) is None


@pytest.mark.parametrize(
    ("expected", "result", "verdict"),
    [
        (1, 1.0, True),
        (True, 1, True),
        ([1, 2], (1, 2), False),
        ((1, 2), [1, 2], False),
        ({1, 2}, {2, 1}, True),
        ({1, 2}, [1, 2], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ("1", 1, False),
        (None, None, True),
        (None, False, False),
        (1, None, False),
        (math.inf, math.inf, True),
        (1 + 2j, 1 + 2j, True),
        (3, object(), False),
        # floats: within 1e-6, and of the same type
        (0.3, 0.1 + 0.2, True),
        (1.0, 1.0 + 9e-7, True),
        (1.0, 1.0 + 2e-6, False),
        (1e9, 1e9 + 50, True),  # relative 1e-7
        (2.5, 2, False),
        ([0.3, 1.0], [0.1 + 0.2, 1.0], True),
        ([0.3, 1.0], (0.1 + 0.2, 1.0), False),
        ([0.3, 1.0], [0.1 + 0.2], False),
        ([0.3], [0.1 + 0.2, 1.0], False),
        ([[0.3]], [[0.1 + 0.2]], False),  # nested floats ask for equality
        ((0.3, "a"), (0.1 + 0.2, "a"), False),
        ([0.3], ["0.3"], False),
        ([0.3], [None], False),
        ([0.3], [[0.3], [0.4]], False),
    ],
)
def test_equality_and_the_tolerance_of_floats(expected, result, verdict):
    assert right(EXACT, expected, result) is verdict


def test_a_stated_tolerance_holds_for_all_numbers():
    rule = Rule(1e-4)
    assert right(rule, 10, 10)
    assert right(rule, [[0.5, 1]], [[0.50005, 1]])
    assert not right(rule, [[0.5, 1]], [[0.5005, 1]])
    assert not right(rule, "a", "b")


def test_the_tolerance_stays_from_the_first_float_on():
    nested, close = "=[[0.3]]", "=[[0.30000000000000004]]"
    assert first_wrong(EXACT, [(), ()], [nested, "=0.3"], [close, "=0.3"]) == 0
    assert first_wrong(EXACT, [(), ()], ["=0.3", nested], ["=0.3", close]) is None


def test_a_number_of_another_type_is_right_only_when_equal():
    assert first_wrong(EXACT, [()], ["=0.5"], ["~0.5"]) is None
    assert first_wrong(EXACT, [()], ["=0.3"], ["~0.30000000000000004"]) == 0


def test_the_index_of_the_first_wrong_result():
    assert first_wrong(EXACT, [()] * 4, ["=1", "=2", "=3", "=4"], ["=1", "=2", "=4", "=3"]) == 2
    assert first_wrong(EXACT, [()] * 4, ["=1", "=2", "=3", "=4"], ["=1", "=2"]) is None


def test_sets_are_compared_where_the_task_says_so():
    rule = Rule(as_sets=True)
    namespace = {"g": lambda *x: list(x)}
    called = eval(rule.entry("g"), namespace)
    assert called(1, 2, 2) == {1, 2}
    assert right(rule, {1, 2}, {2, 1})
    assert not right(rule, {1, 2}, {1})


@pytest.mark.parametrize(
    ("expected", "result", "verdict"),
    [
        ("Found!", object(), True), ("Found!", None, False), ("Found!", True, True), ("Found!", False, False),
        (None, None, True), (None, False, True), (None, True, False), (None, "no", False),
        (True, "x", True),
    ],
)  # fmt: skip
def test_only_whether_there_is_a_result(expected, result, verdict):
    assert right(Rule(not_none=True), expected, result) is verdict


def test_any_root_of_a_polynomial():
    rule = Rule(1e-4, oracle=is_root, only_oracle=True)
    assert right(rule, 2.0, 3.0, [6, -5, 1])
    assert right(rule, 2.0, 2.00001, [6, -5, 1])
    assert not right(rule, 2.0, 2.1, [6, -5, 1])
    assert not right(rule, 2.0, "2", [6, -5, 1])
    assert not right(rule, 2.0, None, [6, -5, 1])
    assert not right(rule, 2.0, 1e300, [6, -5, 1])
    assert not right(rule, 2.0, math.nan, [6, -5, 1])


def test_tasks_that_accept_more_than_the_canonical_result():
    assert right(Rule(oracle=anything), True, "whatever", 1, 2)
    assert right(Rule(oracle=zero), 7, 0, 12)
    assert not right(Rule(oracle=zero), 7, 1, 12)
    assert right(Rule(oracle=digit_distance), 1, 1, 1, 2)
    assert right(Rule(oracle=digit_distance), 2, 6, 123, 6)  # |1 - 0| + |2 - 0| + |3 - 6|
    assert not right(Rule(oracle=digit_distance), 2, 5, 123, 6)
    assert right(Rule(oracle=digit_distance), 2, 2, -1, 3)  # no digits, but equal
    assert right(Rule(oracle=pyramid_surface), 33, round(9 + 6 * math.hypot(1.5, 4)), 3, 4)
    assert not right(Rule(oracle=pyramid_surface), 33, 36, 3, 4)
    assert not right(Rule(oracle=pyramid_surface), 33, None, 3, 4)


def test_long_results_are_compared_by_their_digest():
    many = list(range(10_000))
    assert right(EXACT, many, list(range(10_000)))
    assert not right(EXACT, many, [*many[:-1], 0])
    assert not right(EXACT, many, 1)
    assert not right(EXACT, 1, many)
    assert right(Rule(not_none=True), 1, many)


@pytest.mark.parametrize("text", ["=print(1)", "=[", "=" + "[" * 5000, "=1 if 1 else 2", "=x"])
def test_unreadable_results_are_wrong(text):
    assert first_wrong(EXACT, [()], ["=1"], [text]) == 0
    assert first_wrong(Rule(not_none=True), [()], ["=1"], [text]) == 0
