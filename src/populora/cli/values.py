"""Reads single values, and whole configs, the way LightningCLI's parser will."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import yaml
from jsonargparse import ArgumentParser, get_loader

from populora.cli.schema import Option
from populora.cli.wording import did_you_mean
from populora.errors import ConfigError

_read_yaml = get_loader("yaml")


def read_config(path: Path) -> Mapping[str, Any]:
    """Read a config file.

    Raises:
        ConfigError: there is no such file, or it is not a YAML mapping.
    """
    if not path.is_file():
        around = path.parent if path.parent.is_dir() else Path("configs")
        raise ConfigError(
            f"{path}: no such config{did_you_mean(str(path), map(str, around.rglob('*.yaml')))}"
        )
    try:
        content = _read_yaml(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{path}: not readable as YAML: {reason}") from error
    if not isinstance(content, Mapping):
        raise ConfigError(f"{path}: expected a mapping with model, data and trainer, got {content!r}")
    return content


def read_text(text: str, option: Option | None) -> Any:
    """Read a value written on the command line: as YAML, or as it stands where only that fits."""
    try:
        value = _read_yaml(text)
        if option is not None:
            converted(value, option)
    except (yaml.YAMLError, argparse.ArgumentError):
        return text
    return value


def converted(value: Any, option: Option) -> Any:
    """Return the value as its option's type.

    Raises:
        ArgumentError: it does not fit the type.
    """
    if option.kind is Any or (value is None and type(None) in get_args(option.kind)):
        return value
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--value", type=option.kind, required=True)
    return parser.parse_object({"value": value}).value
