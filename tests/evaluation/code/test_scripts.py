"""Outputs compared as LiveCodeBench does."""

import pytest

from populora.evaluation.code.scripts import same_output


@pytest.mark.parametrize(
    ("expected", "output", "verdict"),
    [
        ("1 2\n3\n", "1 2\n3", True),
        ("1 2\n3", "  1 2  \n3\n\n\n", True),
        ("Yes\nNo", "Yes\r\nNo\r\n", True),
        ("Yes", "yes", False),
        ("1 2", "1  2", True),
        ("a b", "a  b", False),
        ("1\n2", "1 2", False),
        ("1\n\n2", "1\n2", False),
        ("0.5", "0.50", True),
        ("0.5", ".5", True),
        ("0.5", "0.5000001", False),
        ("3", "3.0", True),
        ("0.666666666666666666666666666667", "0.6666666666666666", True),
        ("1414213.56237309504880168872", "1414213.5623730952", False),
        ("9007199254740993", "9007199254740992", False),
        ("9007199254740993", "9007199254740992.0", False),
        ("1.5 2", "1.5", False),
        ("1e3", "1000", True),
        ("1 a", "1.0 a", False),
        ("", "", True),
        ("", "\n", True),
        ("1", "", False),
        ("1", "sNaN", False),
        ("nan", "NaN", False),
        ("1", "1e999999999999999999999", False),
        ("0", "0e999999999", True),
    ],
)
def test_same_output(expected, output, verdict):
    assert same_output(expected, output) is verdict
