"""How callbacks reach the parts of a run."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar, cast, get_args

import lightning as L

from populora.errors import ConfigError

if TYPE_CHECKING:
    from populora.datamodule import RolloutDataModule
    from populora.module import PopuLoRAModule
    from populora.population.bank import AdapterBank
    from populora.records import Member

C = TypeVar("C", bound=L.Callback)
Evaluated = Literal["students", "all"]
"""Whom a callback evaluates: the students alone, or teachers too."""


def find_callback(trainer: L.Trainer, kind: type[C]) -> C | None:
    """Return the first callback of a kind, None without any."""
    callbacks: list[L.Callback] = trainer.callbacks  # type: ignore[attr-defined]
    return next((callback for callback in callbacks if isinstance(callback, kind)), None)


def module_of(trainer: L.Trainer) -> "PopuLoRAModule":
    """Return the module that is being trained."""
    return cast("PopuLoRAModule", trainer.lightning_module)


def bank_of(trainer: L.Trainer) -> "AdapterBank":
    """Return the adapters; they exist while a run goes on."""
    bank = module_of(trainer).bank
    if bank is None:
        raise RuntimeError("the adapter bank exists only after configure_model")
    return bank


def data_of(trainer: L.Trainer) -> "RolloutDataModule":
    """Return the datamodule that plays the iterations."""
    return cast("RolloutDataModule", trainer.datamodule)  # type: ignore[attr-defined]


def log_folder(trainer: L.Trainer) -> Path:
    """Return the folder of the run's logs: the first logger's, else the trainer's root."""
    return Path(trainer.log_dir or trainer.default_root_dir)


def check_evaluated(callback: str, members: str) -> None:
    """Refuse a callback's argument ``members`` that is not of :data:`Evaluated`.

    Raises:
        ConfigError: it is not.
    """
    if members not in get_args(Evaluated):
        raise ConfigError(f"{callback}(members={members!r}): expected 'students' or 'all'")


def evaluated_members(trainer: L.Trainer, members: Evaluated) -> "tuple[Member, ...]":
    """Return the members to evaluate."""
    population = module_of(trainer).population
    return population.members if members == "all" else population.students
