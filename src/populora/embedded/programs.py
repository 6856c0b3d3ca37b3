"""Seeded generation of small typed programs over ints, lists of ints and strings."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import Formatter
from typing import Any

from populora.embedded.ops import LETTERS, OPS, OPS_WITH, Kind, Op
from populora.embedded.split import is_held_out
from populora.embedded.tracing import Trace, live_before, run

MAX_STEPS = 8
STEP_WEIGHTS = (0.26, 0.22, 0.16, 0.12, 0.09, 0.06, 0.05, 0.04)
_CONSTANTS = frozenset("nabkmlu")
_FRESH = ("y", "z", "w")
_SECOND_SHARE = 0.25
_RETURN_SHARE = 0.4
_TRIED_INPUTS = 5
_DOMINANT_SHARE = 0.6


@dataclass(frozen=True)
class Program:
    """A program and what is known about it.

    Attributes:
        params: Parameter names.
        kinds: Their types.
        body: Top-level statements without indentation; the last is a return.
        hints: A word and the constants of each statement that counts as a step.
    """

    params: tuple[str, ...]
    kinds: tuple[Kind, ...]
    body: tuple[str, ...]
    hints: tuple[str, ...]

    @cached_property
    def source(self) -> str:
        """The text of the program, without a newline at the end."""
        lines = [f"def f({', '.join(self.params)}):"]
        lines += ["    " + line for code in self.body for line in code.split("\n")]
        return "\n".join(lines)

    @property
    def steps(self) -> int:
        """Number of statements; a closing return of a bare name is not counted."""
        return len(self.hints)

    @property
    def message(self) -> str:
        """The kinds of the operations, in order, with their constants."""
        return ", ".join(self.hints)

    @property
    def uses_all_arguments(self) -> bool:
        """Whether every argument matters to some statement."""
        return live_before(self.body)[0] == frozenset(self.params)

    def run(self, values: Sequence[Any]) -> Trace:
        """Runs the program and returns its trace."""
        trace = run(self.params, self.body, values)
        assert trace is not None
        return trace


@dataclass(frozen=True)
class Sample:
    """A program with distinct inputs and their traces."""

    program: Program
    inputs: tuple[tuple[Any, ...], ...]
    traces: tuple[Trace, ...]


def input_text(values: Sequence[Any]) -> str:
    """Writes arguments as the text between the parentheses of a call."""
    return ", ".join(map(repr, values))


def acceptable(value: Any) -> bool:
    """Whether a value is small enough to appear in a program's run."""
    if isinstance(value, int):
        return -99 <= value <= 99
    if isinstance(value, str):
        return len(value) <= 8
    return len(value) <= 7 and all(-50 <= item <= 50 for item in value)


def random_value(rng: random.Random, kind: Kind, second: bool = False) -> Any:
    """Draws an argument."""
    if kind == "int":
        return rng.randint(1, 5) if second else rng.randint(0, rng.choice((9, 20)))
    if kind == "list":
        return [rng.randint(0, 9) for _ in range(rng.randint(1, 3 if second else 5))]
    return "".join(rng.choices(LETTERS, k=rng.randint(1, 2) if second else rng.randint(2, 6)))


def random_arguments(rng: random.Random, kinds: Sequence[Kind]) -> tuple[Any, ...]:
    """Draws one value for each parameter."""
    return tuple(random_value(rng, kind, second=i > 0) for i, kind in enumerate(kinds))


def draw_steps(rng: random.Random, weights: Sequence[float] = STEP_WEIGHTS) -> int:
    """Draws a number of statements."""
    return rng.choices(range(1, len(weights) + 1), weights)[0]


class _Builder:
    """Grows the body of one program."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.kind: Kind = rng.choices(("int", "list", "str"), (0.34, 0.38, 0.28))[0]
        self.params: tuple[str, ...] = ("x",)
        self.kinds: tuple[Kind, ...] = (self.kind,)
        if rng.random() < _SECOND_SHARE:
            same = rng.random() < 0.4
            self.params += ("y" if same else "n",)
            self.kinds += (self.kind if same else "int",)
        self.fresh = [name for name in _FRESH if name not in self.params]
        self.current = "x"
        self.waiting = len(self.params) > 1
        self.body: list[str] = []
        self.hints: list[str] = []

    def extend(self, room: int) -> bool:
        """Adds an operation of at most ``room`` statements; False where none fits."""
        pair_ops = OPS_WITH.get((self.kind, self.kinds[-1]))
        use_second = len(self.params) > 1 and self.rng.random() < (0.5 if self.waiting else 0.15)
        if (use_second or (self.waiting and room == 1)) and pair_ops:
            op, self.waiting = pair_ops.draw(self.rng), False
        else:
            op = OPS[self.kind].draw(self.rng)
        if len(op.codes) > room or (len(op.codes) > 1 and not self.fresh):
            return False
        self._add(op)
        return True

    def _add(self, op: Op) -> None:
        rng = self.rng
        letter, other = rng.sample(LETTERS, 2)
        fields = {
            "x": self.current,
            "n": self.params[-1],
            "t": self.fresh.pop(0) if len(op.codes) > 1 else "",
            "a": rng.randint(1, 9),
            "b": rng.randint(2, 3),
            "k": rng.randint(1, 3),
            "m": rng.randint(3, 5),
            "l": letter,
            "u": other,
        }
        self.body += [code.format(**fields) for code in op.codes]
        self.hints += [_hint(word, code, fields) for word, code in zip(op.hints, op.codes, strict=True)]
        self.kind = op.out
        if op.moves:
            self.current = str(fields["t"])

    def finish(self) -> Program:
        """Closes the body with a return."""
        head = f"{self.current} = "
        if self.body[-1].startswith(head) and self.rng.random() < _RETURN_SHARE:
            self.body[-1] = "return " + self.body[-1].removeprefix(head)
        else:
            self.body.append(f"return {self.current}")
        return Program(self.params, self.kinds, tuple(self.body), tuple(self.hints))


def _hint(word: str, code: str, fields: Mapping[str, object]) -> str:
    used = dict.fromkeys(name for _, name, _, _ in Formatter().parse(code) if name in _CONSTANTS)
    return " ".join([word, *(str(fields[name]) for name in used)])


def random_program(rng: random.Random, steps: int) -> Program:
    """Draws a program of exactly ``steps`` statements; it may leave an argument unused."""
    while True:
        builder = _Builder(rng)
        while len(builder.body) < steps:
            if not builder.extend(steps - len(builder.body)) and rng.random() < 0.1:
                break
        if len(builder.body) == steps:
            return builder.finish()


def sample(rng: random.Random, steps: int, inputs: int, held_out: bool = False) -> Sample:
    """Draws a program of one side of the split with ``inputs`` different inputs.

    It uses all its arguments, all values along every run are small, and no output dominates. Inputs come in ascending
    order, short ones first, which lets a proposer avoid repeating one.
    """
    while True:
        program = random_program(rng, steps)
        if is_held_out(program.source) != held_out or not program.uses_all_arguments:
            continue
        found = _inputs(rng, program, max(inputs, _TRIED_INPUTS))
        if found is None or _dominated([trace.result for _, trace in found]):
            continue
        kept = sorted(found[:inputs], key=_size)
        return Sample(program, tuple(v for v, _ in kept), tuple(t for _, t in kept))


def _size(run: tuple[tuple[Any, ...], Trace]) -> list[Any]:
    values, _ = run
    return [value if isinstance(value, int) else (len(value), value) for value in values]


def _dominated(outputs: Sequence[Any]) -> bool:
    [(_, most)] = Counter(map(repr, outputs)).most_common(1)
    return most > _DOMINANT_SHARE * len(outputs)


def _inputs(rng: random.Random, program: Program, count: int) -> list[tuple[tuple[Any, ...], Trace]] | None:
    found: dict[str, tuple[tuple[Any, ...], Trace]] = {}
    failures = 0
    while len(found) < count:
        values = random_arguments(rng, program.kinds)
        text = input_text(values)
        if text in found:
            failures += 1
        else:
            trace = _try_run(program, values)
            if trace is None:
                failures += 2
            else:
                found[text] = (values, trace)
        if failures > 6:
            return None
    return list(found.values())


def _try_run(program: Program, values: Sequence[Any]) -> Trace | None:
    try:
        return run(program.params, program.body, values, acceptable)
    except (ArithmeticError, IndexError, TypeError, ValueError):
        return None
