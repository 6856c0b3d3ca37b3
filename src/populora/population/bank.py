"""The adapters of all members on one frozen base."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from peft import LoraConfig, get_peft_model
from peft.tuners.lora import LoraLayer
from torch import Tensor, nn
from transformers import PreTrainedModel

from populora.config import AdapterConfig
from populora.errors import CheckpointError
from populora.population.adapter_files import (
    config_text,
    from_tensors,
    read_folder,
    scale_of,
    to_tensors,
    write_folder,
)
from populora.population.head import logit_scale
from populora.population.layout import Layout, use_packed_attention
from populora.population.lowrank import Adapter, LowRank, fresh_rows
from populora.population.routing import Router
from populora.population.targets import target_paths
from populora.rollouts.fingerprint import as_served, fingerprint


class AdapterBank(nn.Module):
    """One LoRA adapter a member, side by side on a frozen base, in PEFT's layers and file format.

    Factors are float32 whatever the base's type. A starts random from a generator of its own for each
    name, B at zero (the paper is silent), so a fresh member equals the base. The base never trains: it
    stays in evaluation mode, without dropout, in every mode of the bank.

    ``model`` is the PEFT model; it is called through :meth:`hidden_states` alone, where adapters act and
    attention keeps sequences apart.

    Args:
        base: Causal language model; its linear layers are replaced in place by PEFT's.
        names: Members, in slot order.
        config: Rank, scale and adapted modules.
        seed: With a member's name it decides the initial A.

    Raises:
        ConfigError: a target module does not exist, the base has no language-model head, or it computes
            attention in a way of its own.
    """

    def __init__(self, base: PreTrainedModel, names: Sequence[str], config: AdapterConfig, seed: int) -> None:
        super().__init__()
        self.names = tuple(names)
        self.config = config
        targets = target_paths(base, config.target_modules)
        use_packed_attention(base)
        settings: dict[str, Any] = {
            "r": config.rank,
            "lora_alpha": config.alpha,
            "lora_dropout": 0.0,
            "target_modules": targets,
            "task_type": "CAUSAL_LM",
        }
        self.model = get_peft_model(base, LoraConfig(**settings), adapter_name=self.names[0])
        for name in self.names[1:]:
            self.model.add_adapter(name, LoraConfig(**settings))
        adapted = sorted(self.model.peft_config[self.names[0]].target_modules)
        self._config_text = config_text(config.rank, config.alpha, adapted, base.name_or_path)
        self.logit_scale = logit_scale(base.config)
        """Number that the base multiplies its logits by."""
        self._scaling = config.alpha / config.rank
        self._router = Router(self._scaling)
        self._layers: dict[str, Any] = {
            path: layer for path, layer in sorted(self._base.named_modules()) if isinstance(layer, LoraLayer)
        }
        self._freeze_base()
        for name in self.names:
            self._initialise(name, seed)
        if base.is_gradient_checkpointing:
            self.enable_gradient_checkpointing()
        self.train()

    @property
    def device(self) -> torch.device:
        """Where the factors are."""
        return self.parameters_of(self.names[0])[0].device

    @property
    def head(self) -> Tensor:
        """Weight of the language-model head, frozen; (V, H)."""
        weight: Tensor = self._base.get_output_embeddings().weight
        return weight

    @property
    def head_bias(self) -> Tensor | None:
        """Bias of the language-model head, frozen; (V,), None for most models."""
        return getattr(self._base.get_output_embeddings(), "bias", None)

    def named_factors(self, name: str) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield ``<module path>.a`` and ``<module path>.b`` of every module of ``name``, by path.

        Raises:
            ValueError: no member has that name.
        """
        self._require_known(name)
        for path, layer in self._layers.items():
            yield f"{path}.a", layer.lora_A[name].weight
            yield f"{path}.b", layer.lora_B[name].weight

    def parameters_of(self, name: str) -> list[nn.Parameter]:
        """Return the trainable factors of ``name``, in the order of :meth:`named_factors`."""
        return [parameter for _, parameter in self.named_factors(name)]

    def read(self, name: str) -> dict[str, LowRank]:
        """Return float32 copies of ``name``'s factors on the CPU, by module path."""
        self._require_known(name)
        return {path: LowRank(*(f.cpu().clone() for f in pair)) for path, *pair in self._factors(name)}

    @torch.no_grad()
    def write(self, name: str, adapter: Adapter) -> None:
        """Copy ``adapter`` into ``name``'s factors in place; nothing changes unless all of it fits.

        Raises:
            ValueError: unknown name, other modules or shapes, or values that are not finite.
        """
        self._require_known(name)
        if adapter.keys() != self._layers.keys():
            differing = sorted(adapter.keys() ^ self._layers.keys())
            raise ValueError(
                f"the adapter for {name!r} differs from the bank in its modules: {differing[:4]}"
            )
        for path, a, b in self._factors(name):
            new = adapter[path]
            if (new.a.shape, new.b.shape) != (a.shape, b.shape):
                raise ValueError(
                    f"the adapter for {name!r} has shapes {tuple(new.a.shape)}, {tuple(new.b.shape)} at {path}; "
                    f"expected {tuple(a.shape)}, {tuple(b.shape)}"
                )
            if not new.finite:
                raise ValueError(f"the adapter for {name!r} has a value that is not finite at {path}")
        for path, a, b in self._factors(name):
            a.copy_(adapter[path].a)
            b.copy_(adapter[path].b)

    def hidden_states(self, layout: Layout) -> Tensor:
        """Run one forward pass in which every token goes through the adapter of its segment.

        Differentiable with respect to exactly the adapters used; the others' ``grad`` stays None.

        Returns:
            Hidden states after the final norm, in the base's type; (T, H).

        Raises:
            ValueError: an adapter is unknown.
        """
        self._require_known(*(s.adapter for s in layout.segments if s.adapter is not None))
        with self._router.through(layout.segments):
            hidden: Tensor = self._base.get_decoder()(
                input_ids=layout.input_ids[None],
                position_ids=layout.positions[None],
                use_cache=False,
                layout=layout,
            ).last_hidden_state
        return hidden[0]

    def enable_gradient_checkpointing(self) -> None:
        """Recompute the decoder layers in the backward pass, each with the routing of its forward pass.

        Use this instead of the base's ``gradient_checkpointing_enable``, which forgets the routing.
        """
        self._base.gradient_checkpointing_enable(
            {"use_reentrant": False, "context_fn": self._router.checkpoint_contexts}
        )
        self.train(self.training)

    def train(self, mode: bool = True) -> Self:
        """Set the bank's mode; inside, only checkpointed layers themselves are told that they train."""
        super().train(False)
        self.training = mode
        for module in self._base.modules():
            module.training = bool(getattr(module, "gradient_checkpointing", False))
        return self

    @torch.no_grad()
    def state(self, name: str, dtype: torch.dtype = torch.float32) -> tuple[str, dict[str, Tensor]]:
        """Return ``name`` as PEFT's config text and tensors, copies on the CPU, cast to ``dtype``."""
        adapter = {path: LowRank(u.a.to(dtype), u.b.to(dtype)) for path, u in self.read(name).items()}
        return self._config_text, to_tensors(adapter)

    def load_state(self, name: str, state: tuple[str, dict[str, Tensor]]) -> None:
        """Take over what :meth:`state` returned.

        Raises:
            CheckpointError: an adapter of another rank, scale or modules.
        """
        config, tensors = state
        scale, expected = scale_of(config), (self.config.alpha, self.config.rank)
        if scale != expected:
            raise CheckpointError(
                f"the saved adapter of {name!r} has (alpha, rank) {scale}, this run {expected}; "
                "set model.adapter to the saved values"
            )
        try:
            self.write(name, from_tensors(tensors))
        except ValueError as error:
            raise CheckpointError(f"the saved adapter does not fit this run: {error}") from error

    def export(self, name: str, folder: Path, dtype: torch.dtype) -> None:
        """Write ``name`` as a folder that PEFT and vLLM load, its factors cast to ``dtype``."""
        write_folder(folder, *self.state(name, dtype))

    def load(self, name: str, folder: Path) -> None:
        """Read ``name`` from such a folder.

        Raises:
            CheckpointError: the folder cannot be read or does not fit this run.
        """
        self.load_state(name, read_folder(folder))

    def fingerprint(self, name: str, dtype: torch.dtype) -> str:
        """Return a digest of the factors as an engine of type ``dtype`` holds them."""
        self._require_known(name)
        return fingerprint(
            (path, *as_served(a, b, self._scaling, dtype)) for path, a, b in self._factors(name)
        )

    @property
    def _base(self) -> Any:
        return self.model.get_base_model()

    def _factors(self, name: str) -> Iterator[tuple[str, Tensor, Tensor]]:
        for path, layer in self._layers.items():
            yield path, layer.lora_A[name].weight.detach(), layer.lora_B[name].weight.detach()

    def _freeze_base(self) -> None:
        self.model.base_model.disable_adapter_layers()
        self.model.requires_grad_(False)
        for layer in self._layers.values():
            layer.register_forward_hook(self._router)
            layer.lora_A.requires_grad_(True)
            layer.lora_B.requires_grad_(True)

    @torch.no_grad()
    def _initialise(self, name: str, seed: int) -> None:
        digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:8]))
        for _, a, b in self._factors(name):
            a.copy_(fresh_rows(a.shape[0], a.shape[1], generator))
            b.zero_()

    def _require_known(self, *names: str) -> None:
        for name in names:
            if name not in self.names:
                raise ValueError(f"no adapter {name!r} in the bank; known: {', '.join(self.names)}")
