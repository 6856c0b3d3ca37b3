"""The command: settle everything that can be settled at once, and only then load torch, Lightning and vLLM."""

import errno
import sys
from collections.abc import Sequence

from populora.base import local_folder
from populora.cli.arguments import DOCTOR, Command, read_command
from populora.config import BaseConfig
from populora.errors import ConfigError, PopuLoRAError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: The words after the program's name; those of this process when None.

    Returns:
        0 when all went well, 2 when a setting is wrong, 1 when the run failed in a way that has a known remedy or
        the machine lacks something that runs need, 130 when it was interrupted.
    """
    try:
        return _run(read_command(sys.argv[1:] if arguments is None else arguments))
    except ConfigError as error:
        sys.stderr.write("".join(f"populora: {line}\n" for line in str(error).splitlines()))
        return 2
    except PopuLoRAError as error:
        sys.stderr.write(f"populora: {error}\n")
        return 1
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        sys.stderr.write(
            f"populora: {error}. Checkpoints written so far are whole; free some space and go on with --ckpt_path last\n"
        )
        return 1
    except KeyboardInterrupt:
        return 130


def _run(command: Command) -> int:
    if "--help" in command.switches:
        from populora.cli.help import help_text

        sys.stdout.write(help_text(command.subcommand))
        return 0
    if command.subcommand in DOCTOR:
        from populora.cli.doctor import examine

        return 0 if examine() else 1
    from populora.cli.settings import dump, resolve

    settings = resolve(command)
    if "--print_config" in command.switches:
        sys.stdout.write(dump(settings))
    elif "--dry_run" in command.switches:
        from populora.cli.dry_run import report

        report(settings)
    else:
        local_folder(settings.section(BaseConfig))
        from populora.cli.launch import launch

        launch(command)
    return 0
