"""Equal answers are equal however they are written, and others are not."""

import pytest

from populora.evaluation.mathematics.comparison import equal, plainly_equal
from populora.evaluation.mathematics.numbers import read

AT_ONCE = [
    ("25", "025"),
    ("27.0", "27"),
    ("27", "27.0"),
    ("5600", "5,600"),
    ("10,\\!080", "10080"),
    ("18", "\\$18.00"),
    ("18", "$18 dollars"),
    ("70", "70 miles per hour"),
    ("15\\mbox{ cm}^2", "15"),
    ("864 \\mbox{ inches}^2", "864 square inches"),
    ("90^\\circ", "90"),
    ("45", "45 degrees"),
    ("\\frac{1}{2}", "0.5"),
    ("\\frac12", "\\dfrac{1}{2}"),
    ("\\frac43", "4/3"),
    ("-\\frac{1}{2}", "\\frac{-1}{2}"),
    ("1\\frac{4}{5}", "1.8"),
    ("137 \\frac{1}{2}", "\\frac{275}{2}"),
    ("\\frac{1}{3}", "0.333333"),
    ("62.5%", "62.5\\%"),
    ("62.5%", "0.625"),
    ("0.15", "15%"),
    ("4.2", "4.2\\%"),
    ("4.5e33", "4.5 \\times 10^{33}"),
    ("1e-5", "10^{-5}"),
    ("\\text{Evelyn}", "evelyn"),
    ("\\text{(C)}", "C"),
    ("52_8", "52_{8}"),
    ("52_8", "52"),
    ("x=5", "5"),
    ("k=1", "1"),
    ("M=\\frac{9}{32}", "9/32"),
    ("-1./3", "-\\frac{1}{3}"),
    ("70", "\\textbf{70}"),
    (".35625", "0.35625"),
    ("11,\\! 111,\\! 111,\\! 100", "11,111,111,100"),
    ("4.5e33", "4.5\\times 10^{33} erg/s"),
    ("np.arcsin(10/13)", "\\arcsin(10/13)"),
]
AT_ONCE_DIFFERENT = [
    ("25", "26"),
    ("5600", "5601"),
    ("27.0", "27.5"),
    ("\\frac{1}{3}", "0.33"),
    ("\\frac{1}{3}", "0.333334"),
    ("1/2", "1/3"),
    ("7", "-7"),
    ("62.5%", "6.25"),
    ("2.88e-19", "1.325e-27"),
    ("1e-8", "0"),
    ("52_8", "52_{5}"),
    ("\\text{east}", "seat"),
    ("\\text{even}", "odd"),
    ("1", "1e100000000"),
    (".35625", "35625"),
    ("3", "3/0"),
]
CLOSER = [
    ("3,5,7", "7, 5 and 3"),
    ("$69$,$84$", "84, 69"),
    ("41352,42351,51342", "51342, 41352, 42351"),
    ("1 \\pm \\sqrt{19}", "1+\\sqrt{19}, 1-\\sqrt{19}"),
    ("\\{1\\pm\\sqrt{5},-2\\}", "-2, 1 + \\sqrt5, 1 - \\sqrt5"),
    ("(3,4]", "(3, 4]"),
    ("\\left( 3, \\frac{\\pi}{2} \\right)", "(3, \\pi/2)"),
    ("$(6,3),(9,3),(9,5)$", "(9,5), (6,3), (9,3)"),
    ("(6,5)", "x=6, y=5"),
    ("11\\sqrt2", "\\sqrt{242}"),
    ("\\frac{\\sqrt{3}}{3}", "\\frac{1}{\\sqrt{3}}"),
    ("\\sqrt{130}", "11.4017543"),
    ("f(x)=x+1", "x + 1"),
    ("$f(x)=x$,$f(x)=2-x$", "f(x) = 2 - x, f(x) = x"),
    ("(a+5)(b+2)", "ab + 2a + 5b + 10"),
    ("x \\in [-2,7]", "[-2, 7]"),
    ("6 - 5i", "-5i + 6"),
    ("\\sqrt{2}", "\\sqrt{2} \\approx 1.41"),
    ("y = 2x + 3", "y=3+2x"),
]
CLOSER_DIFFERENT = [
    ("3,5,7", "3, 5"),
    ("3,5,7", "3, 5, 8"),
    ("(3,4]", "[3,4]"),
    ("(2,4)", "(4,2)"),
    ("\\sqrt{130}", "11.40"),
    ("\\sqrt{2}", "\\sqrt{3}"),
    ("x+1", "x+2"),
    ("6m", "6n"),
    ("2^{1009}", "2^{1010}"),
    ("\\frac{1}{2", "\\frac{1}{3"),
    ("2", "2\\pi"),
    ("2", "2 pi"),
]


@pytest.mark.parametrize(("gold", "answer"), AT_ONCE)
def test_equal_numbers_and_texts(gold: str, answer: str) -> None:
    assert plainly_equal(gold, answer) is True


@pytest.mark.parametrize(("gold", "answer"), AT_ONCE_DIFFERENT)
def test_different_numbers_and_texts(gold: str, answer: str) -> None:
    assert not plainly_equal(gold, answer)


@pytest.mark.parametrize(("gold", "answer"), CLOSER)
def test_equal_lists_and_expressions(gold: str, answer: str) -> None:
    assert equal(gold, answer)


@pytest.mark.parametrize(("gold", "answer"), CLOSER_DIFFERENT)
def test_different_lists_and_expressions(gold: str, answer: str) -> None:
    assert not equal(gold, answer)


@pytest.mark.parametrize(("answer", "right"), [("41.804", True), ("41.81", False), ("41.8 km", True)])
def test_quantities_have_a_tolerance_where_the_suite_gives_one(answer: str, right: bool) -> None:
    assert plainly_equal("41.8", answer, tolerance=1e-4) is right


def test_whole_numbers_have_no_tolerance() -> None:
    assert plainly_equal("1450000", "1450001", tolerance=1e-4) is False


def test_numbers_of_absurd_size_are_none() -> None:
    assert read("9" * 1_000_000) is None
    assert read("1e999999999") is None
