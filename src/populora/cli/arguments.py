"""Reads the command line into a command, without judging the settings in it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from populora.cli.wording import did_you_mean
from populora.errors import ConfigError

SUBCOMMANDS = {
    "fit": "co-evolve a population, or go on with --ckpt_path last",
    "validate": "evaluate the members of a checkpoint",
}
DOCTOR = {"doctor": "print what this machine has and lacks for a run, and the remedies"}
SWITCHES = {
    "--help": "print the settings, their meaning and their defaults",
    "--dry_run": "check everything, print sizes, memory and where outputs go, and stop",
    "--print_config": "print the complete config, ready to be used as one, and stop",
}
_SHORT = {"-h": "--help", "-c": "--config", "--dry-run": "--dry_run", "--print-config": "--print_config"}


@dataclass(frozen=True)
class Override:
    """A setting given on the command line, as it was written."""

    key: str
    text: str


@dataclass
class Command:
    """What the user asked for."""

    subcommand: str = ""
    configs: list[Path] = field(default_factory=list)
    overrides: list[Override] = field(default_factory=list)
    switches: set[str] = field(default_factory=set)


def read_command(arguments: Sequence[str]) -> Command:
    """Read a command line; the subcommand may stand before or after the configs.

    Raises:
        ConfigError: no or an unknown subcommand, a stray word, or an option without its value.
    """
    command = Command()
    words = list(arguments)
    while words:
        word = words.pop(0)
        name, equals, text = word.partition("=")
        name = _SHORT.get(name, name)
        if name in SWITCHES and not equals:
            command.switches.add(name)
        elif not name.startswith("-"):
            _take_word(command, word)
        else:
            if not equals:
                text = _value_of(name, words)
            if name == "--config":
                command.configs.append(Path(text))
            else:
                command.overrides.append(Override(name.lstrip("-"), text))
    if not command.subcommand and "--help" not in command.switches:
        raise ConfigError(
            "expected a command, fit or validate; for example: populora fit --config configs/quickstart.yaml"
        )
    if command.subcommand in DOCTOR and (command.configs or command.overrides):
        raise ConfigError("doctor looks at the machine, not at settings: populora doctor")
    return command


def _take_word(command: Command, word: str) -> None:
    if command.subcommand:
        raise ConfigError(f"unexpected {word!r} on the command line; settings are written --key value")
    known = SUBCOMMANDS | DOCTOR
    if word not in known:
        raise ConfigError(
            f"unknown command {word!r}, expected fit, validate or doctor{did_you_mean(word, known)}"
        )
    command.subcommand = word


def _value_of(name: str, words: list[str]) -> str:
    if not words or words[0].startswith("--"):
        raise ConfigError(f"{name} needs a value: {name} VALUE{did_you_mean(name, SWITCHES)}")
    return words.pop(0)
