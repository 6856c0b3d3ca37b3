"""The LightningModule: a frozen base, a bank of adapters, one gradient step per adapter and iteration."""

import logging
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import lightning as L
import torch
from lightning.pytorch.core.optimizer import LightningOptimizer
from torch import Tensor
from transformers import PreTrainedTokenizerBase
from typing_extensions import override

from populora.base import base_digest, load_model, load_tokenizer, locate_base, prompt_set, weight_dtype
from populora.config import AdapterConfig, BaseConfig, LearningConfig, PopulationConfig, RewardConfig
from populora.errors import CheckpointError
from populora.learning.advantages import advantages
from populora.learning.health import Health
from populora.learning.samples import samples_of
from populora.learning.step import gradient_step
from populora.loop_progress import rewind
from populora.population.bank import AdapterBank
from populora.population.head import check_head
from populora.population.members import Population
from populora.population.optimizer import build_optimizer, load_moments, moments
from populora.records import RolloutBatch, Update
from populora.seeding import run_seed
from populora.tasks import Prompts

if TYPE_CHECKING:
    from populora.datamodule import RolloutDataModule

logger = logging.getLogger(__name__)


class PopuLoRAModule(L.LightningModule):
    """Trains every adapter of a population on what it sampled in this iteration.

    One training batch is one iteration: a :class:`~populora.records.RolloutBatch`. Each adapter takes one
    gradient step on its own samples; the steps share one forward and backward pass over mixed batches.
    Ratings, evolution, archive and logging are callbacks; removing one removes its behaviour only.

    Args:
        base: The frozen language model.
        population: Who plays.
        adapter: The shape of every adapter.
        rewards: What answers and problems earn.
        learning: The policy-gradient step.

    Raises:
        ConfigError: the settings name something that does not exist.
    """

    automatic_optimization = False
    strict_loading = False

    def __init__(
        self,
        base: BaseConfig = BaseConfig(),
        population: PopulationConfig = PopulationConfig(),
        adapter: AdapterConfig = AdapterConfig(),
        rewards: RewardConfig = RewardConfig(),
        learning: LearningConfig = LearningConfig(),
    ) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.strict_loading = False
        self.base = base
        self.adapter = adapter
        self.rewards = rewards
        self.learning = learning
        advantages[learning.advantage]
        self.population = Population(population)
        self.health = Health(learning)
        self.bank: AdapterBank | None = None
        self.iteration = 0
        self.last_update: Update | None = None
        self._moments: dict[str, dict[str, Tensor]] = {}

    @cached_property
    def base_folder(self) -> Path:
        """Local folder of the base, downloaded if need be."""
        return locate_base(self.base)

    @cached_property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """The base's tokenizer."""
        return load_tokenizer(self.base_folder)

    @cached_property
    def prompts(self) -> Prompts:
        """The templates that fit the base."""
        return Prompts.load(prompt_set(self.base, self.tokenizer), self.tokenizer)

    @property
    def weight_dtype(self) -> torch.dtype:
        """Type of the base's weights in trainer and engine."""
        return weight_dtype(self.base, accelerated=self.device_type != "cpu")

    @property
    def device_type(self) -> str:
        """Kind of device the trainer runs on, ``cpu`` without a trainer."""
        return "cpu" if self._trainer is None else self.trainer.strategy.root_device.type

    @override
    def configure_model(self) -> None:
        if self.bank is not None:
            return
        model = load_model(self.base_folder, self.weight_dtype)
        check_head(model)
        if self.base.gradient_checkpointing:
            model.gradient_checkpointing_enable()
        names = [member.name for member in self.population.members]
        self.bank = AdapterBank(model, names, self.adapter, run_seed())

    @override
    def configure_optimizers(self) -> torch.optim.Optimizer:
        return build_optimizer(self._bank, self.learning)

    @property
    def _bank(self) -> AdapterBank:
        if self.bank is None:
            raise RuntimeError("the adapter bank exists only after configure_model")
        return self.bank

    @property
    def optimizer(self) -> torch.optim.AdamW:
        """The optimizer that holds every member's moments."""
        wrapped = cast(LightningOptimizer, self.optimizers())
        return cast(torch.optim.AdamW, wrapped.optimizer)

    @override
    def on_train_start(self) -> None:
        for name, tensors in self._moments.items():
            load_moments(self.optimizer, name, tensors)
        self._moments = {}

    @override
    def training_step(self, batch: RolloutBatch, batch_idx: int) -> None:
        wrapped = cast(LightningOptimizer, self.optimizers())
        self._data.tell("train", 0, 1)
        self._data.remember(batch)
        self.last_update = gradient_step(
            self._bank,
            self.optimizer,
            samples_of(batch),
            self.learning,
            self.rollout_temperature,
            backward=self.manual_backward,
            step=wrapped.step,
        )
        self.health.check(self.last_update)
        for update in self.last_update.members:
            if update.stepped:
                self.population.advance(update.member.name)
        self.iteration = batch.iteration + 1

    @property
    def rollout_temperature(self) -> float:
        """Temperature at which the batches are sampled."""
        return self._data.rollout.temperature

    @property
    def _data(self) -> "RolloutDataModule":
        return cast("RolloutDataModule", self.trainer.datamodule)  # type: ignore[attr-defined]

    @override
    def validation_step(self, batch: int, batch_idx: int) -> None:
        """Evaluation is a callback's work; the loop only gives it its hook."""

    @override
    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Replace Lightning's weights and optimizer list by adapters and moments filed by member."""
        bank, names = self._bank, [member.name for member in self.population.members]
        checkpoint["state_dict"] = {}
        checkpoint["optimizer_states"] = []
        checkpoint["adapters"] = {name: bank.state(name) for name in names}
        checkpoint["moments"] = (
            {name: moments(self.optimizer, name) for name in names} if self._fitting else {}
        )
        checkpoint["populora"] = {
            "iteration": self.iteration,
            "seed": run_seed(),
            "base": self.base.path,
            "base_digest": base_digest(self.base_folder),
            "rank": self.adapter.rank,
            "alpha": self.adapter.alpha,
            "population": self.population.state_dict(),
            "health": self.health.state_dict(),
        }

    @property
    def _fitting(self) -> bool:
        return bool(self.trainer.optimizers)

    @override
    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Restore adapters, population and counters.

        Raises:
            CheckpointError: the checkpoint was made with another base, rank, scale or population.
        """
        state = checkpoint["populora"]
        self._refuse_another_shape(state)
        self.population.load_state_dict(state["population"])
        if state["seed"] != run_seed():
            logger.warning(
                "The checkpoint was made with seed %d, this run has %d: it will not repeat the "
                "uninterrupted run.",
                state["seed"],
                run_seed(),
            )
        for name, tensors in checkpoint["adapters"].items():
            self._bank.load_state(name, tensors)
        self._moments = checkpoint["moments"]
        self.health.load_state_dict(state["health"])
        self.iteration = state["iteration"]
        rewind(checkpoint["loops"]["fit_loop"], self.iteration)

    def _refuse_another_shape(self, state: Mapping[str, Any]) -> None:
        present = {"rank": self.adapter.rank, "alpha": self.adapter.alpha}
        for key, value in present.items():
            if state[key] != value:
                raise CheckpointError(
                    f"the checkpoint was made with model.adapter.{key} {state[key]!r}, this run has {value!r}; "
                    f"set it to {state[key]!r}, or start a new run without --ckpt_path"
                )
        digest = base_digest(self.base_folder)
        if state["base_digest"] != digest:
            raise CheckpointError(
                f"the checkpoint was made with model.base.path {state['base']!r} (digest {state['base_digest']}), this "
                f"run has {self.base.path!r} (digest {digest}): its adapters mean nothing on another base; set it to "
                "the same base, or start a new run without --ckpt_path"
            )
