"""Checks the classes that a config names for the trainer, from their source."""

from collections.abc import Iterator, Mapping
from typing import Any

from populora.cli.static import Parameter, UnknownName, parameters
from populora.cli.wording import did_you_mean

LISTS = {
    "trainer.callbacks": ("populora.callbacks", "lightning.pytorch.callbacks"),
    "trainer.logger": ("lightning.pytorch.loggers",),
}
"""Keys whose values are classes, and where a class named without its module is looked for."""

_ENTRY = {"class_path", "init_args", "dict_kwargs"}


def problems(key: str, value: Any) -> Iterator[str]:
    """Yield what is wrong with the classes under a key: unknown ones, unknown or missing arguments."""
    if value is None or isinstance(value, bool):
        return
    for entry in value if isinstance(value, list) else [value]:
        if isinstance(entry, str):
            entry = {"class_path": entry}
        if not isinstance(entry, Mapping) or not isinstance(entry.get("class_path"), str):
            yield f"each entry of {key} must be a class_path, with init_args where it needs some, got {entry!r}"
            continue
        for name in entry.keys() - _ENTRY:
            yield f"unknown key {name} beside class_path {entry['class_path']}{did_you_mean(str(name), _ENTRY)}"
        yield from _class_problems(entry["class_path"], entry.get("init_args") or {}, LISTS[key])


def _class_problems(class_path: str, given: Mapping[str, Any], homes: tuple[str, ...]) -> Iterator[str]:
    try:
        accepted = _accepted(class_path, homes)
    except UnknownName as unknown:
        yield f"no class {class_path}{did_you_mean(unknown.name, unknown.defined)}"
        return
    if accepted is None:
        return
    for name in given:
        if name not in accepted:
            hint = did_you_mean(name, accepted) or f"; it takes {', '.join(accepted) or 'no arguments'}"
            yield f"unknown argument {name} of {class_path}{hint}"
    for parameter in accepted.values():
        if parameter.default is None and parameter.name not in given:
            yield f"{class_path} needs the argument {parameter.name}: {parameter.annotation}"


def _accepted(class_path: str, homes: tuple[str, ...]) -> Mapping[str, Parameter] | None:
    if "." in class_path:
        return parameters(class_path)
    defined: list[str] = []
    for home in homes:
        try:
            return parameters(f"{home}.{class_path}")
        except UnknownName as unknown:
            defined += unknown.defined
    raise UnknownName(class_path, defined)
