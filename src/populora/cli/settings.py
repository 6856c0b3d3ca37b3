"""Merges configs and overrides, and checks every setting before anything heavy is loaded."""

import argparse
import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import yaml

from populora.cli import pieces
from populora.cli.arguments import Command
from populora.cli.schema import Option, options
from populora.cli.values import converted, read_config, read_text
from populora.cli.wording import did_you_mean
from populora.errors import ConfigError

T = TypeVar("T")


@dataclass(frozen=True)
class Setting:
    """A value, and where it was given."""

    value: Any
    source: str


@dataclass
class Settings:
    """All settings of a run: what was given, over the defaults."""

    known: Mapping[str, Option]
    given: dict[str, Setting] = field(default_factory=dict)
    sections: dict[type, Any] = field(default_factory=dict)

    def section(self, kind: type[T]) -> T:
        """Return the section of that dataclass, checked."""
        instance: T = self.sections[kind]
        return instance

    def __getitem__(self, key: str) -> Any:
        """Return the value under a dotted key, given or default."""
        if key in self.given:
            return self.given[key].value
        option = self.known[key]
        if option.section is not None:
            return getattr(self.sections[option.section], option.name)
        return ast.literal_eval(option.parameter.default or "None")


def resolve(command: Command) -> Settings:
    """Merge configs, then overrides, over the defaults.

    Raises:
        ConfigError: one line for each setting that is wrong, naming its key and where it stands.
    """
    merger = _Merger(options(command.subcommand))
    for path in command.configs:
        merger.take("", read_config(path), str(path))
    for override in command.overrides:
        merger.take_override(override.key, override.text)
    merger.build_sections()
    if merger.problems:
        raise ConfigError("\n".join(merger.problems))
    return merger.settings


class _Merger:
    def __init__(self, known: Mapping[str, Option]) -> None:
        self.settings = Settings(known)
        self.problems: list[str] = []
        self._groups = {"", *_prefixes(known)}

    def take(self, key: str, value: Any, source: str) -> None:
        """Take a setting, or all settings below a group."""
        if key in self.settings.known:
            self._take_value(self.settings.known[key], value, source)
        elif key not in self._groups:
            self.problems.append(f"{source}: unknown key {key}{self._hint(key)}")
        elif not isinstance(value, Mapping):
            self.problems.append(f"{source}: {key} must be a mapping of settings, got {value!r}")
        else:
            for name, inner in value.items():
                self.take(f"{key}.{name}" if key else str(name), inner, source)

    def take_override(self, key: str, text: str) -> None:
        """Take a setting of the command line; what lies inside a class is left to Lightning."""
        value = read_text(text, self.settings.known.get(key))
        if key.endswith("+"):
            key, added = key[:-1], value if isinstance(value, list) else [value]
            value = [*self._list_so_far(key), *added]
        inside = [
            name for name in self.settings.known if name.startswith("trainer.") and key.startswith(f"{name}.")
        ]
        if not inside:
            self.take(key, value, "command line")

    def _list_so_far(self, key: str) -> list[Any]:
        option, given = self.settings.known.get(key), self.settings.given.get(key)
        if given is not None:
            so_far = given.value
        else:
            so_far = getattr(option.section(), option.name) if option and option.section else None
        return so_far if isinstance(so_far, list) else []

    def build_sections(self) -> None:
        """Build the dataclasses, whose own checks see several settings at once."""
        fields: dict[type, dict[str, Any]] = {}
        for key, option in self.settings.known.items():
            if option.section is not None:
                chosen = fields.setdefault(option.section, {})
                if key in self.settings.given:
                    chosen[option.name] = self.settings.given[key].value
        for section, values in fields.items():
            try:
                self.settings.sections[section] = section(**values)
            except ConfigError as error:
                self.problems.append(f"{self._source_of(str(error))}: {error}")

    def _take_value(self, option: Option, value: Any, source: str) -> None:
        if option.key in pieces.LISTS:
            self.problems += [f"{source}: {problem}" for problem in pieces.problems(option.key, value)]
        try:
            value = converted(value, option)
        except argparse.ArgumentError:
            wanted = option.parameter.annotation
            self.problems.append(f"{source}: {option.key} must be {wanted}, got {value!r}")
        else:
            self.settings.given[option.key] = Setting(value, source)

    def _hint(self, key: str) -> str:
        parent, _, name = key.rpartition(".")
        siblings = _children(parent, self.settings.known)
        namesakes = [known for known in self.settings.known if known.endswith(f".{name}")]
        if hint := did_you_mean(name, siblings):
            return hint
        if namesakes:
            return f"; did you mean {namesakes[0]}?"
        return f"; {parent or 'a config'} has {', '.join(siblings)}" if siblings else ""

    def _source_of(self, message: str) -> str:
        named = re.match(r"[\w.]+", message)
        key = named.group() if named else ""
        near = [k for k in self.settings.given if k == key] or [
            k for k in self.settings.given if k.rpartition(".")[0] == key.rpartition(".")[0]
        ]
        return self.settings.given[near[-1]].source if near else "defaults"


def _prefixes(keys: Mapping[str, Option]) -> Iterator[str]:
    for key in keys:
        parts = key.split(".")
        for end in range(1, len(parts)):
            yield ".".join(parts[:end])


def _children(parent: str, keys: Mapping[str, Option]) -> list[str]:
    start = f"{parent}." if parent else ""
    return list(dict.fromkeys(key[len(start) :].split(".")[0] for key in keys if key.startswith(start)))


def dump(settings: Settings) -> str:
    """Return the complete config as YAML, every default written out."""
    tree: dict[str, Any] = {}
    for key in settings.known:
        *path, name = key.split(".")
        node = tree
        for part in path:
            node = node.setdefault(part, {})
        value = settings[key]
        node[name] = list(value) if isinstance(value, tuple) else value
    return yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)
