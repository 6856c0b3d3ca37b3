"""Hand-written problems that fill the buffer before the first iteration.

They give the first proposal prompts something to show, and induction programs to ask about. The paper is silent; AZR
starts from the identity function alone, the first of these.
"""

from dataclasses import dataclass

from populora.records import Problem


@dataclass(frozen=True)
class _Seed:
    program: str
    message: str
    pairs: tuple[tuple[str, str], ...]
    """(input, output); induction shows the first half, deduction and abduction use the first."""


_SEEDS = (
    _Seed(
        "def f(x):\n    return x",
        "Nothing changes.",
        (
            ("'Hello world'", "'Hello world'"),
            ("1", "1"),
            ("[1, 2]", "[1, 2]"),
            ("True", "True"),
            ("{'a': 1}", "{'a': 1}"),
            ("-2.5", "-2.5"),
            ("()", "()"),
            ("None", "None"),
            ("''", "''"),
            ("[[3], []]", "[[3], []]"),
        ),
    ),
    _Seed(
        "def f(a, b):\n    total = a\n    for step in range(b):\n        total += step * a\n    return total",
        "Two numbers; the second says how often something is added.",
        (
            ("3, 4", "21"),
            ("1, 0", "1"),
            ("2, 3", "8"),
            ("-1, 5", "-11"),
            ("10, 2", "20"),
            ("0, 7", "0"),
            ("4, 1", "4"),
            ("5, 6", "80"),
            ("-3, 3", "-12"),
            ("7, 4", "49"),
        ),
    ),
    _Seed(
        "def f(word):\n    out = ''\n    for i, letter in enumerate(word):\n"
        "        out = out + letter if i % 2 == 0 else letter + out\n    return out",
        "Letters go to alternating ends.",
        (
            ("'garden'", "'ndagre'"),
            ("'ab'", "'ba'"),
            ("'abc'", "'bac'"),
            ("''", "''"),
            ("'z'", "'z'"),
            ("'12345'", "'42135'"),
            ("'aab'", "'aab'"),
            ("'level'", "'eelvl'"),
            ("'noon'", "'nono'"),
            ("'abcdef'", "'fdbace'"),
        ),
    ),
    _Seed(
        "def f(numbers):\n    kept = []\n    for number in sorted(numbers):\n"
        "        if not kept or number - kept[-1] >= 3:\n            kept.append(number)\n    return kept",
        "Numbers too close to an earlier one are left out.",
        (
            ("[5, 1, 9, 3, 4]", "[1, 4, 9]"),
            ("[]", "[]"),
            ("[2]", "[2]"),
            ("[0, 3, 6]", "[0, 3, 6]"),
            ("[8, 7, 6, 5]", "[5, 8]"),
            ("[1, 1, 1]", "[1]"),
            ("[10, 0, 5]", "[0, 5, 10]"),
            ("[-4, -2, 0, 2]", "[-4, 0]"),
            ("[3, 30, 31, 34]", "[3, 30, 34]"),
            ("[12, 14, 16, 18, 20]", "[12, 16, 20]"),
        ),
    ),
    _Seed(
        "def f(text, shift):\n    counts = {}\n    for word in text.split():\n"
        "        key = len(word) + shift\n        counts[key] = counts.get(key, 0) + 1\n"
        "    return sorted(counts.items())",
        "Something about the lengths of the words, moved by a number.",
        (
            ("'the cat sat on a mat', 1", "[(2, 1), (3, 1), (4, 4)]"),
            ("'', 5", "[]"),
            ("'one', 0", "[(3, 1)]"),
            ("'a b c', 2", "[(3, 3)]"),
            ("'to be or not', -1", "[(1, 3), (2, 1)]"),
            ("'blue red blue', 10", "[(13, 1), (14, 2)]"),
            ("'x yy zzz', 0", "[(1, 1), (2, 1), (3, 1)]"),
            ("'same same', -4", "[(0, 2)]"),
            ("'long longer longest', 3", "[(7, 1), (9, 1), (10, 1)]"),
            ("'go', 7", "[(9, 1)]"),
        ),
    ),
    _Seed(
        "def f(grid):\n    def score(row):\n        return max(row) - min(row) if row else -1\n\n"
        "    best = max(range(len(grid)), key=lambda i: score(grid[i]))\n"
        "    return best, [sum(row) for row in grid]",
        "The position of the most uneven row comes first, then something of every row.",
        (
            ("[[1, 2], [5, 0, 3], [4]]", "(1, [3, 8, 4])"),
            ("[[7]]", "(0, [7])"),
            ("[[], [2]]", "(1, [0, 2])"),
            ("[[1, 9], [9, 1]]", "(0, [10, 10])"),
            ("[[3, 3], [2, 3]]", "(1, [6, 5])"),
            ("[[]]", "(0, [0])"),
            ("[[0, -5], [1, 1, 1], [10, 2]]", "(2, [-5, 3, 12])"),
            ("[[100], [50, 51]]", "(1, [100, 101])"),
            ("[[1], [2], [3]]", "(0, [1, 2, 3])"),
            ("[[4, 8, 15], [16, 23, 42]]", "(1, [27, 81])"),
        ),
    ),
)


def seed_problems() -> tuple[Problem, ...]:
    """Return the seed problems: each program once for every task."""
    return tuple(problem for seed in _SEEDS for problem in _problems(seed))


def _problems(seed: _Seed) -> tuple[Problem, ...]:
    inputs, outputs = zip(*seed.pairs, strict=True)
    return (
        Problem("deduction", seed.program, inputs[:1], outputs[:1]),
        Problem("abduction", seed.program, inputs[:1], outputs[:1]),
        Problem("induction", seed.program, inputs, outputs, seed.message),
    )
