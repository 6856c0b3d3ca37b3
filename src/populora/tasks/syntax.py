"""Model-written source as a syntax tree: parsed safely, never compiled, never run."""

import ast
import warnings


def parse(source: str) -> ast.Module | None:
    """Parse a program; None when it is not Python (or too nested for the parser).

    Args:
        source: Any text, of a length the caller has bounded: parsing is linear in it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return None


def depth(tree: ast.AST) -> int:
    """Edges from ``tree`` down to its deepest node; load and store markers are not nodes of the text."""
    level: list[ast.AST] = [tree]
    count = -1
    while level:
        count += 1
        level = [
            child
            for node in level
            for child in ast.iter_child_nodes(node)
            if not isinstance(child, ast.expr_context)
        ]
    return count


def variables(tree: ast.AST) -> set[str]:
    """Names that arguments, assignments, loops, comprehensions, handlers and patterns bind."""
    bound: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case (
                ast.arg(arg=str(name))
                | ast.Name(id=name, ctx=ast.Store())
                | ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.MatchMapping(rest=str(name))
            ):
                bound.add(name)
    return bound
