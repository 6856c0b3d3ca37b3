"""Execution of programs statement by statement, with the value each statement leaves behind."""

import ast
import builtins
import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

RESULT = "_result"
_LOG = "_log"
_BUILTINS = frozenset(dir(builtins))


@dataclass(frozen=True, slots=True)
class Step:
    """A compiled top-level statement.

    Attributes:
        code: Code object, instrumented to log branches taken and values per iteration.
        line: The statement joined to one line.
        target: The variable it changes; ``RESULT`` for a return.
        reads: Variables whose value it needs.
        kills: Variables it overwrites without regard to their value.
    """

    code: CodeType
    line: str
    target: str
    reads: frozenset[str]
    kills: frozenset[str]


def _target(node: ast.stmt) -> str:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AugAssign(target=ast.Name(id=name)):
            return name
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return name
        case ast.If() | ast.For() | ast.While():
            return _target(node.body[-1])
        case ast.Return():
            return RESULT
    raise ValueError(f"statement outside the embedded language: {ast.unparse(node)}")


def _log_call(argument: str) -> ast.stmt:
    return ast.parse(f"{_LOG}({argument})").body[0]


def _instrument(node: ast.stmt) -> ast.stmt:
    match node:
        case ast.Return(value=ast.expr() as value):
            return ast.Assign(targets=[ast.Name(RESULT, ast.Store())], value=value)
        case ast.If():
            node.body.insert(0, _log_call("'yes'"))
            node.orelse.insert(0, _log_call("'no'"))
        case ast.For() | ast.While():
            node.body.append(_log_call(f"repr({_target(node)})"))
    return node


def _reads(node: ast.stmt) -> frozenset[str]:
    names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    inner = {
        name.id
        for part in ast.walk(node)
        if isinstance(part, ast.For | ast.comprehension)
        for name in ast.walk(part.target)
        if isinstance(name, ast.Name)
    }
    loads = {n.id for n in names if isinstance(n.ctx, ast.Load)}
    if not isinstance(node, ast.Assign | ast.Return):
        loads.add(_target(node))
    return frozenset(loads - inner - _BUILTINS)


@lru_cache(maxsize=65536)
def compile_step(code: str) -> Step:
    """Compiles one top-level statement, given as source without indentation."""
    node = ast.parse(code).body[0] if not code.startswith("return ") else _parse_return(code)
    target, reads = _target(node), _reads(node)
    kills = frozenset({target}) if isinstance(node, ast.Assign | ast.Return) else frozenset()
    module = ast.fix_missing_locations(ast.Module([_instrument(node)], []))
    line = " ".join(part.strip() for part in code.split("\n"))
    return Step(compile(module, "<step>", "exec"), line, target, reads, kills)


def _parse_return(code: str) -> ast.stmt:
    return ast.Return(value=ast.parse(code.removeprefix("return "), mode="eval").body)


@dataclass(frozen=True, slots=True)
class Trace:
    """What happened when a program ran on one input.

    Attributes:
        before: Variables before each statement.
        notes: The value that each statement left, as written in a trace.
        result: What the program returned.
    """

    before: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]
    result: Any


def run(
    params: Sequence[str], body: Sequence[str], values: Sequence[Any], accept: Any = None
) -> Trace | None:
    """Runs statements that end in a return.

    Args:
        params: Parameter names.
        body: Top-level statements, the last of which is a return.
        values: Arguments.
        accept: Optional predicate on every value assigned; where it fails, the run is given up.

    Returns:
        The trace, or None where ``accept`` refused a value.
    """
    log: list[str] = []
    scope: dict[str, Any] = dict(zip(params, copy.deepcopy(list(values)), strict=True))
    scope[_LOG] = log.append
    before, notes = [], []
    for code in body:
        step = compile_step(code)
        log.clear()
        names = {k: copy.copy(v) for k, v in scope.items() if k[0] != "_"}
        before.append(names)
        exec(step.code, scope)  # noqa: S102 - the statements are the generator's own
        value = scope[step.target]
        if accept is not None and not accept(value):
            return None
        notes.append(_note(log, repr(value)))
    return Trace(tuple(before), tuple(notes), scope[RESULT])


def _note(log: list[str], value: str) -> str:
    if not log:
        return value
    if log[0] in ("yes", "no"):
        return f"{log[0]} {value}"
    return " ; ".join(log)


def live_before(body: Sequence[str]) -> list[frozenset[str]]:
    """Returns, for each statement, the variables whose values still matter before it."""
    live: frozenset[str] = frozenset()
    found = []
    for code in reversed(body):
        step = compile_step(code)
        live = (live - step.kills) | step.reads
        found.append(live)
    return found[::-1]
