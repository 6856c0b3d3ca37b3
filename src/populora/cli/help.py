"""The help of the command and of its subcommands, made from the same sources that the settings are checked with."""

import shutil
import textwrap
from collections.abc import Iterator

from populora.cli.arguments import DOCTOR, SUBCOMMANDS, SWITCHES
from populora.cli.schema import Option, groups

_EXAMPLES = """examples:
  populora fit --config configs/quickstart.yaml
  populora fit --config configs/quickstart.yaml --data.iterations 10 --model.adapter.rank 8
  populora fit --config configs/quickstart.yaml --ckpt_path last
  populora fit --config configs/quickstart.yaml --dry_run
"""


def help_text(subcommand: str) -> str:
    """Return the help of a subcommand, or of the command itself for an empty name."""
    if subcommand in DOCTOR:
        return f"usage: populora {subcommand}\n\n{DOCTOR[subcommand]}\n"
    return "\n".join(_subcommand(subcommand) if subcommand else _command()) + "\n"


def _command() -> Iterator[str]:
    yield "usage: populora COMMAND --config FILE [--KEY VALUE ...]"
    yield "\nCo-evolve populations of LoRA teachers and students on one frozen language model.\n\ncommands:"
    for name, meaning in (SUBCOMMANDS | DOCTOR).items():
        yield f"  {name:14} {meaning}"
    yield "\nswitches:"
    for name, meaning in SWITCHES.items():
        yield f"  {name:14} {meaning}"
    yield f"\n{_EXAMPLES}\npopulora fit --help lists every setting."


def _subcommand(subcommand: str) -> Iterator[str]:
    yield f"usage: populora {subcommand} --config FILE [--KEY VALUE ...]"
    yield f"\n{SUBCOMMANDS[subcommand]}\n\nswitches:"
    for name, meaning in SWITCHES.items():
        yield f"  {name:14} {meaning}"
    yield "\nSettings, in a config as nested keys, here with a dot between them; later ones win:"
    for group in groups(subcommand):
        yield f"\n{group.title.splitlines()[0]}"
        for option in group.options:
            yield from _option(option)


def _option(option: Option) -> Iterator[str]:
    default = option.parameter.default
    stated = "" if default is None or default.startswith("field(") else f" (default: {default})"
    yield f"  --{option.key}{stated}"
    sentence = (
        option.parameter.help.partition(". ")[0]
        if option.key.startswith("trainer.")
        else option.parameter.help
    )
    width = min(shutil.get_terminal_size().columns, 110)
    yield from textwrap.wrap(sentence, width, initial_indent=" " * 6, subsequent_indent=" " * 6)
