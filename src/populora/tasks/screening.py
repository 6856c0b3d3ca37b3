"""What a look at the text says of a program before it runs: a category of failure, or nothing.

Screening keeps useless problems out; it is no security boundary. The sandbox is.
"""

import ast
from collections.abc import Collection, Iterator

from populora.config import VerifierConfig
from populora.records import Draft
from populora.tasks.syntax import parse, variables

BANNED_NAMES = frozenset(
    {
        "breakpoint", "compile", "eval", "exec", "exit", "globals", "help", "input", "locals", "open", "quit", "vars",
    }
)  # fmt: skip
"""Builtins that run text, wait for a person, or reach outside the program."""
HARMLESS_DUNDERS = frozenset({"__init__", "__name__"})
"""The only double-underscore names a program may mention; it may define any method."""


def screen(program: str, config: VerifierConfig) -> str | None:
    """Return why a program is not fit to run, None when nothing speaks against it.

    Categories: ``too long``, ``syntax``, ``no entry function`` (no ``f`` at the top level), ``no parameter`` (``f``
    takes no positional argument, or requires a keyword), ``async``, ``banned import: os``, ``banned name: eval``.
    A banned builtin's name is free for the program's own variables and functions.
    """
    if len(program) > config.max_program_chars:
        return "too long"
    tree = parse(program)
    if tree is None:
        return "syntax"
    entry = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "f"]
    if not entry:
        return "no entry function"
    if not _takes_positional(entry[-1].args):
        return "no parameter"
    return next(_offences(tree, config.banned_modules), None)


def screen_draft(draft: Draft, config: VerifierConfig) -> str | None:
    """Return why a draft is not fit to run: :func:`screen`, and ``too long`` for an input or the message."""
    texts = (*draft.inputs, draft.message or "")
    if any(len(text) > config.max_literal_chars for text in texts):
        return "too long"
    return screen(draft.program, config)


def _takes_positional(parameters: ast.arguments) -> bool:
    positional = parameters.posonlyargs or parameters.args or parameters.vararg
    return bool(positional) and None not in parameters.kw_defaults


def _offences(tree: ast.Module, banned_modules: Collection[str]) -> Iterator[str]:
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    banned_names = BANNED_NAMES - defined - variables(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from _banned_imports([alias.name for alias in names], banned_modules)
            case ast.ImportFrom(module=module):
                yield from _banned_imports([module if module and not node.level else "."], banned_modules)
            case ast.Name(id=name) | ast.Attribute(attr=name) if _is_dunder(name):
                yield f"banned name: {name}"
            case ast.Name(id=name) if name in banned_names:
                yield f"banned name: {name}"
            case ast.AsyncFunctionDef():
                yield "async"


def _banned_imports(modules: list[str], banned: Collection[str]) -> Iterator[str]:
    for module in modules:
        root = module.partition(".")[0]
        if root in banned or not root:
            yield f"banned import: {root or module}"


def _is_dunder(name: str) -> bool:
    return len(name) > 4 and name[:2] == name[-2:] == "__" and name not in HARMLESS_DUNDERS
