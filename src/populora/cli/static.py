"""Reads what a class accepts from its source, without importing it.

Importing Lightning or torch takes seconds, reading their source milliseconds: so a wrong key is answered before
anything heavy is loaded.
"""

import ast
import importlib.util
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from docstring_parser import parse as parse_docstring


@dataclass(frozen=True)
class Parameter:
    """One argument of a class, as its source states it."""

    name: str
    annotation: str
    default: str | None
    """Source of the default; None when the argument is required."""
    help: str = ""


@dataclass(frozen=True)
class ClassSource:
    """A class definition and the module whose names its bases refer to."""

    node: ast.ClassDef
    module: str


class UnknownName(LookupError):
    """A package or module that can be read surely does not have the name.

    Attributes:
        name: What it does not have.
        defined: What it has instead.
    """

    def __init__(self, name: str, defined: Iterable[str] = ()) -> None:
        super().__init__(name)
        self.name = name
        self.defined = sorted(defined)


@cache
def module_file(module: str) -> Path | None:
    """Return the file an import of the module would read, without importing it; None when it is not Python.

    Raises:
        UnknownName: there is no such module.
    """
    top, *rest = module.split(".")
    spec = importlib.util.find_spec(top)
    if spec is None:
        raise UnknownName(top)
    path = Path(spec.origin or "")
    for name in rest:
        if path.name != "__init__.py":
            return None
        siblings = {entry.name.partition(".")[0]: entry for entry in sorted(path.parent.iterdir())}
        if name not in siblings:
            raise UnknownName(name, siblings)
        path = siblings[name] / "__init__.py" if siblings[name].is_dir() else siblings[name]
    return path if path.suffix == ".py" and path.is_file() else None


@cache
def _definitions(module: str) -> dict[str, ast.ClassDef | tuple[str, str]]:
    """Map each public name of a module to its class, or to the (module, name) that it is imported from."""
    path = module_file(module)
    if path is None:
        return {}
    found: dict[str, ast.ClassDef | tuple[str, str]] = {}
    for node in _statements(ast.parse(path.read_text(encoding="utf-8")).body):
        if isinstance(node, ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(node, module, is_package=path.name == "__init__.py")
            for alias in node.names:
                if alias.name == "*":
                    found.update({name: (origin, name) for name in _star(origin)})
                else:
                    found[alias.asname or alias.name] = (origin, alias.name)
    return found


def _star(module: str) -> Iterable[str]:
    try:
        return _definitions(module)
    except UnknownName:
        return ()


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.If | ast.Try):
            yield from _statements(node.body)
            yield from _statements(node.orelse)
        else:
            yield node


def _origin(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    kept = parts[: len(parts) - node.level + is_package]
    return ".".join([*kept, *([node.module] if node.module else [])])


def find_class(path: str) -> ClassSource | None:
    """Return the definition of the class at a dotted path, following re-exports; None when no source shows it.

    Raises:
        UnknownName: there is no such module, or it is readable and has no such name.
    """
    module, _, name = path.rpartition(".")
    if not module or module_file(module) is None:
        return None
    definition = _definitions(module).get(name)
    if definition is None:
        raise UnknownName(name, _definitions(module))
    if isinstance(definition, ast.ClassDef):
        return ClassSource(definition, module)
    return find_class(".".join(definition))


def parameters(path: str, method: str = "__init__") -> dict[str, Parameter] | None:
    """Return the arguments of a class (or of one of its methods) by name; None when they cannot be known.

    Raises:
        UnknownName: there is no such class.
    """
    source = find_class(path)
    return None if source is None else _parameters(source, method)


def _parameters(source: ClassSource, method: str) -> dict[str, Parameter] | None:
    for node in source.node.body:
        if isinstance(node, ast.FunctionDef) and node.name == method:
            return _of_function(node, ast.get_docstring(source.node) or "")
    if any("dataclass" in ast.unparse(decorator) for decorator in source.node.decorator_list):
        return _of_dataclass(source.node)
    for base in source.node.bases:
        try:
            parent = find_class(f"{source.module}.{ast.unparse(base)}")
        except UnknownName:
            return None
        return None if parent is None else _parameters(parent, method)
    return {}


def _of_function(node: ast.FunctionDef, class_docstring: str) -> dict[str, Parameter] | None:
    if node.args.kwarg is not None:
        return None
    docs = {
        parameter.arg_name: " ".join((parameter.description or "").split())
        for text in (class_docstring, ast.get_docstring(node) or "")
        for parameter in parse_docstring(text).params
    }
    positional = node.args.posonlyargs + node.args.args
    defaults = [None] * (len(positional) - len(node.args.defaults)) + list(node.args.defaults)
    pairs = [
        *zip(positional, defaults, strict=True),
        *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
    ]
    return {
        argument.arg: Parameter(
            argument.arg, _source(argument.annotation) or "", _source(default), docs.get(argument.arg, "")
        )
        for argument, default in pairs
        if argument.arg != "self"
    }


def _of_dataclass(node: ast.ClassDef) -> dict[str, Parameter]:
    found = {}
    following = [*node.body[1:], None]
    for field, after in zip(node.body, following, strict=True):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            doc = (
                after.value.value
                if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                else ""
            )
            name = field.target.id
            found[name] = Parameter(
                name, ast.unparse(field.annotation), _source(field.value), " ".join(str(doc).split())
            )
    return found


def _source(node: ast.expr | None) -> str | None:
    return None if node is None else ast.unparse(node)
