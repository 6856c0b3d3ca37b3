"""Every key a config may have: those of module and datamodule, of Lightning's Trainer, and the command's own."""

import builtins
import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, get_type_hints

from populora import config
from populora.cli.static import Parameter, parameters

MODULE = "populora.module.PopuLoRAModule"
DATAMODULE = "populora.datamodule.RolloutDataModule"
TRAINER = "lightning.pytorch.Trainer"
TRAINER_DEFAULTS: Mapping[str, Any] = {
    "default_root_dir": "runs/default",
    "devices": 1,
    "enable_model_summary": False,
    "log_every_n_steps": 1,
    "max_epochs": 1,
    "num_sanity_val_steps": 0,
    "use_distributed_sampler": False,
}
"""Where the trainer's own defaults do not suit a run whose batches are whole iterations."""

_LOADERS = {"model", "datamodule", "dataloaders", "train_dataloaders", "val_dataloaders"}
_SEED = Parameter("seed_everything", "int", "0", "Seed of everything random in the run.")
_CHECKPOINT = {
    "ckpt_path": Parameter(
        "ckpt_path", "str | None", "None", "Checkpoint to go on from, or to evaluate: `last`, or its folder."
    ),
    "weights_only": Parameter(
        "weights_only", "bool", "True", "Load nothing but tensors and plain values from a checkpoint."
    ),
}


@dataclass(frozen=True)
class Option:
    """One key of a config."""

    key: str
    kind: Any
    """Type of its value; Any where only Lightning can tell."""
    parameter: Parameter
    section: type | None = None
    """The dataclass it is a field of."""

    @property
    def name(self) -> str:
        """Last part of the key."""
        return self.key.rpartition(".")[2]


@dataclass(frozen=True)
class Group:
    """Options that stand under one prefix."""

    prefix: str
    title: str
    options: tuple[Option, ...]


@cache
def groups(subcommand: str) -> tuple[Group, ...]:
    """Return all options of a subcommand, in the order in which help shows them."""
    return (
        Group("", "The run", tuple(_run_options(subcommand))),
        *_groups_of("model", MODULE),
        *_groups_of("data", DATAMODULE),
        Group("trainer", "Lightning's Trainer", tuple(_trainer_options())),
    )


@cache
def options(subcommand: str) -> Mapping[str, Option]:
    """Return all options of a subcommand by key."""
    return {option.key: option for group in groups(subcommand) for option in group.options}


def _run_options(subcommand: str) -> Iterator[Option]:
    yield Option(_SEED.name, bool | int, _SEED)
    for parameter in _known(TRAINER, subcommand):
        if parameter.name not in _LOADERS:
            yield Option(parameter.name, Any, _CHECKPOINT.get(parameter.name, parameter))


def _trainer_options() -> Iterator[Option]:
    for parameter in _known(TRAINER):
        if parameter.name in TRAINER_DEFAULTS:
            parameter = dataclasses.replace(parameter, default=repr(TRAINER_DEFAULTS[parameter.name]))
        yield Option(f"trainer.{parameter.name}", Any, parameter)


def _groups_of(prefix: str, path: str) -> Iterator[Group]:
    for parameter in _known(path):
        key = f"{prefix}.{parameter.name}"
        section = getattr(config, parameter.annotation, None)
        if section is None:
            kind = getattr(builtins, parameter.annotation, Any)
            yield Group(key, parameter.name.capitalize(), (Option(key, kind, parameter),))
        else:
            yield Group(key, inspect.getdoc(section) or "", tuple(_section_options(key, section)))


def _section_options(prefix: str, section: type) -> Iterator[Option]:
    kinds = get_type_hints(section)
    for parameter in _known(f"{section.__module__}.{section.__name__}"):
        yield Option(f"{prefix}.{parameter.name}", kinds[parameter.name], parameter, section)


def _known(path: str, method: str = "__init__") -> Iterator[Parameter]:
    found = parameters(path, method)
    if found is None:
        raise TypeError(f"the source of {path}.{method} is not readable, or takes arbitrary keywords")
    yield from found.values()
