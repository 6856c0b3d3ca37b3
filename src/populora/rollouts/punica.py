"""The seam to vLLM: its CPU layers call this wrapper for everything that concerns adapters."""

from typing import Any

from torch import Tensor
from typing_extensions import override
from vllm.lora.punica_wrapper.punica_cpu import PunicaWrapperCPU

from populora.rollouts.cpu_lora import Grouping, add_lora, group


class GroupedPunicaWrapper(PunicaWrapperCPU):  # type: ignore[misc]
    """vLLM's wrapper with the products of :mod:`populora.rollouts.cpu_lora`."""

    _tokens: Grouping | None = None

    @override
    def update_metadata(self, *args: Any, **kwargs: Any) -> None:
        super().update_metadata(*args, **kwargs)
        self._tokens = group(self.token_lora_indices)

    @override
    def add_lora_linear(
        self,
        y: Tensor,
        x: Tensor,
        lora_a_stacked: tuple[Tensor, ...],
        lora_b_stacked: tuple[Tensor, ...],
        *args: Any,
        **kwargs: Any,
    ) -> None:
        if self._tokens is not None:
            add_lora(y, x, lora_a_stacked, lora_b_stacked, self._tokens)

    @override
    def add_lora_logits(
        self, y: Tensor, x: Tensor, lora_a_stacked: Tensor, lora_b_stacked: Tensor, *args: Any, **kwargs: Any
    ) -> None:
        samples = group(self.sampler_indices)
        if samples is not None:
            add_lora(y, x, (lora_a_stacked,), (lora_b_stacked,), samples)

    @override
    def add_lora_embedding(self, y: Tensor, x: Tensor, *args: Any, **kwargs: Any) -> None:
        if self._tokens is not None and self._tokens.bare is not None:
            x = x.index_fill(0, self._tokens.bare, 0.0)
        super().add_lora_embedding(y, x, *args, **kwargs)
