"""The seam to vLLM: its CPU layers call this wrapper for everything that concerns adapters."""

from typing import Any

from torch import Tensor
from typing_extensions import override
from vllm.lora.punica_wrapper.punica_cpu import PunicaWrapperCPU

from populora.rollouts.cpu_lora import Factors, Grouping, add_lora, arrange, group


class GroupedPunicaWrapper(PunicaWrapperCPU):  # type: ignore[misc]
    """vLLM's wrapper with the products of :mod:`populora.rollouts.cpu_lora`."""

    _tokens: Grouping = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._factors: dict[tuple[int, ...], Factors] = {}

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
        if self._tokens:
            add_lora(y, x, self._arranged(lora_a_stacked, lora_b_stacked), self._tokens)

    @override
    def add_lora_logits(
        self, y: Tensor, x: Tensor, lora_a_stacked: Tensor, lora_b_stacked: Tensor, *args: Any, **kwargs: Any
    ) -> None:
        samples = group(self.sampler_indices)
        if samples:
            add_lora(y, x, self._arranged((lora_a_stacked,), (lora_b_stacked,)), samples)

    @override
    def add_lora_embedding(self, y: Tensor, x: Tensor, *args: Any, **kwargs: Any) -> None:
        bare = (self.token_lora_indices < 0).nonzero().squeeze(1)
        super().add_lora_embedding(y, x.index_fill(0, bare, 0.0), *args, **kwargs)

    def _arranged(self, a_slots: tuple[Tensor, ...], b_slots: tuple[Tensor, ...]) -> Factors:
        """Arrange a layer's factors when it is first used; its tensors live as long as this wrapper."""
        key = tuple(id(a) for a in a_slots)
        if key not in self._factors:
            self._factors[key] = arrange(a_slots, b_slots)
        return self._factors[key]
