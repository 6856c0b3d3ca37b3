"""Hands a checked command to LightningCLI; importing this loads torch and Lightning."""

import argparse
import logging
import warnings
from pathlib import Path
from typing import Any, TypeVar

import rich
from jsonargparse import set_parsing_settings
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.cli import LightningCLI, SaveConfigCallback
from lightning.pytorch.loggers import TensorBoardLogger
from rich.logging import RichHandler
from typing_extensions import override

from populora.callbacks import RunCheckpoint
from populora.callbacks.run import find_callback
from populora.checkpoint_io import DirectoryCheckpointIO
from populora.checkpoints import LAST
from populora.cli.arguments import SUBCOMMANDS, Command
from populora.cli.schema import TRAINER_DEFAULTS
from populora.cli.takeover import chosen_checkpoint, occupied, requeued, set_aside
from populora.datamodule import RolloutDataModule
from populora.errors import ConfigError
from populora.module import PopuLoRAModule

T = TypeVar("T")


class RunConfig(SaveConfigCallback):
    """Writes the resolved config beside the logs, and into every checkpoint."""

    @override
    def on_save_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        checkpoint["config"] = self.parser.dump(self.config, skip_none=False)


class PopuLoRACLI(LightningCLI):
    """LightningCLI for a module and datamodule that are always the same, with directory checkpoints.

    All outputs of a run go below ``trainer.default_root_dir``, TensorBoard's too.
    """

    @staticmethod
    @override
    def subcommands() -> dict[str, set[str]]:
        return {name: LightningCLI.subcommands()[name] for name in SUBCOMMANDS}

    @override
    def parse_arguments(self, parser: Any, args: Any) -> None:
        self.config = parser.parse_args(args)

    @override
    def instantiate_classes(self) -> None:
        """Build everything; jsonargparse buries what a callback says, so that is kept aside.

        Raises:
            ConfigError: a class refuses its arguments.
        """
        refusals: list[ConfigError] = []

        def build(class_type: type[T], *args: Any, **kwargs: Any) -> T:
            try:
                return class_type(*args, **kwargs)
            except ConfigError as error:
                refusals.append(error)
                raise

        self.parser.add_instantiator(build, Callback)
        try:
            super().instantiate_classes()
        except ValueError as error:
            raise ConfigError(str(refusals[0] if refusals else error)) from error

    @override
    def instantiate_trainer(self, **kwargs: Any) -> Trainer:
        given = self._get(self.config_init, "trainer")
        if given["logger"] in (None, True):
            root = Path(given["default_root_dir"])
            kwargs["logger"] = TensorBoardLogger(root.parent, name="", version=root.name)
        plugins = given["plugins"] or []
        kwargs["plugins"] = [*(plugins if isinstance(plugins, list) else [plugins]), DirectoryCheckpointIO()]
        return super().instantiate_trainer(**kwargs)

    def fit(self, ckpt_path: str | None = None, **arguments: Any) -> None:
        """Train, from a checkpoint or anew; what an earlier run left is then moved aside.

        Raises:
            ConfigError: another run is at work in the same folder.
        """
        root = Path(self.trainer.default_root_dir)
        with occupied(root):
            ckpt_path = self._checkpoint(LAST if ckpt_path is None and requeued(root) else ckpt_path)
            if ckpt_path is None:
                set_aside(root)
            self.trainer.fit(ckpt_path=ckpt_path, **arguments)

    def validate(self, ckpt_path: str | None = None, **arguments: Any) -> None:
        """Evaluate the members of a checkpoint."""
        self.trainer.validate(ckpt_path=self._checkpoint(ckpt_path), **arguments)

    def _checkpoint(self, choice: str | None) -> str | None:
        """Replace ``last`` and ``best`` by a folder that is whole; without RunCheckpoint Lightning knows them."""
        checkpoints = find_callback(self.trainer, RunCheckpoint)
        if checkpoints is None:
            return choice
        return chosen_checkpoint(
            choice, (checkpoints.location(self.trainer), Path(self.trainer.default_root_dir))
        )


def launch(command: Command) -> PopuLoRACLI:
    """Run the command and return what ran it.

    Raises:
        ConfigError: Lightning refuses a setting, or a class refuses its arguments.
        PopuLoRAError: the run failed in a way that has a known remedy.
    """
    _configure_logging()
    set_parsing_settings(docstring_parse_attribute_docstrings=True)
    try:
        return PopuLoRACLI(
            PopuLoRAModule,
            RolloutDataModule,
            args=lightning_arguments(command),
            trainer_defaults=dict(TRAINER_DEFAULTS),
            seed_everything_default=0,
            save_config_callback=RunConfig,
            save_config_kwargs={"overwrite": True, "config_filename": _config_name(command)},
            parser_kwargs={"exit_on_error": False} | {name: {"exit_on_error": False} for name in SUBCOMMANDS},
            auto_configure_optimizers=False,
            load_from_checkpoint_support=False,
        )
    except (argparse.ArgumentError, MisconfigurationException) as error:
        raise ConfigError(str(error)) from error
    except SystemExit as error:  # Lightning's answer to an interrupt
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise


def lightning_arguments(command: Command) -> list[str]:
    """Return the words that LightningCLI reads the same command from."""
    configs = [f"--config={path}" for path in command.configs]
    overrides = [f"--{override.key}={override.text}" for override in command.overrides]
    return [command.subcommand, "--weights_only=true", *configs, *overrides]


def _configure_logging() -> None:
    """Show what this package says, and of Lightning only warnings; above a progress bar where there is one."""
    for harmless in (r".*treespec, LeafSpec.* is deprecated", r".*in eval mode at the start of training"):
        warnings.filterwarnings("ignore", message=harmless)
    terminal = rich.get_console().is_terminal
    handler = RichHandler(show_path=False, markup=False) if terminal else logging.StreamHandler()
    logging.basicConfig(format="%(message)s", handlers=[handler])
    logging.getLogger("populora").setLevel(logging.INFO)
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _config_name(command: Command) -> str:
    return "config.yaml" if command.subcommand == "fit" else f"{command.subcommand}.yaml"
