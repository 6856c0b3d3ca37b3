"""How complex a program is: what coverage and the decline of single-agent play are measured with.

The paper names the measures but not their conventions or ranges; those here are ours.
"""

import ast
from collections.abc import Callable
from dataclasses import dataclass

from populora.registry import Registry
from populora.tasks.syntax import depth, parse, variables


@dataclass(frozen=True)
class Complexity:
    """Measures of one program."""

    ast_depth: int
    """Edges from the module to its deepest syntax node; ``def f(x): return x`` has 3 (function, return, name)."""
    cyclomatic: int
    """McCabe's number of the whole program: 1 plus its decisions."""
    lines: int
    """Physical lines that are neither blank nor only a comment; docstrings count."""
    variables: int
    """Distinct names bound by arguments, assignments, loops, comprehensions, handlers and patterns."""


@dataclass(frozen=True)
class Descriptor:
    """One axis of the archive: a measure of programs, and the range its cells divide."""

    measure: Callable[[Complexity], float]
    low: float
    high: float
    """Beyond the range values count as its end."""

    def __call__(self, program: str) -> float | None:
        """Measure a program; None when it does not parse."""
        complexity = measure(program)
        return None if complexity is None else float(self.measure(complexity))


descriptors: Registry[Descriptor] = Registry("descriptor")
"""The paper is silent on the ranges."""
descriptors.register("ast_depth")(Descriptor(lambda c: c.ast_depth, 3, 15))
descriptors.register("cyclomatic")(Descriptor(lambda c: c.cyclomatic, 1, 16))
descriptors.register("lines")(Descriptor(lambda c: c.lines, 2, 40))
descriptors.register("variables")(Descriptor(lambda c: c.variables, 1, 16))


def measure(program: str) -> Complexity | None:
    """Measure a program; None when it does not parse."""
    tree = parse(program)
    if tree is None:
        return None
    lines = (line.strip() for line in program.splitlines())
    return Complexity(
        ast_depth=depth(tree),
        cyclomatic=1 + sum(_decisions(node) for node in ast.walk(tree)),
        lines=sum(bool(line) and not line.startswith("#") for line in lines),
        variables=len(variables(tree)),
    )


def _decisions(node: ast.AST) -> int:
    """Ways a node can branch (McCabe, "A complexity measure", 1976).

    One each for if, elif, conditional expression, for, while, except, assert, comprehension loop and its ifs, and
    operand of and/or beyond the first; one for each case but a bare ``case _`` or ``case name``. ``else``, ``try``,
    ``with`` and lambdas do not branch. (The radon tool differs in counting the ``else`` of loops and of try, and no
    cases.)
    """
    match node:
        case (
            ast.If()
            | ast.IfExp()
            | ast.For()
            | ast.AsyncFor()
            | ast.While()
            | ast.ExceptHandler()
            | ast.Assert()
        ):
            return 1
        case ast.comprehension(ifs=conditions):
            return 1 + len(conditions)
        case ast.BoolOp(values=operands):
            return len(operands) - 1
        case ast.match_case(pattern=pattern, guard=guard):
            irrefutable = isinstance(pattern, ast.MatchAs) and pattern.pattern is None
            return (not irrefutable) + (guard is not None)
    return 0
