"""What vLLM's worker is asked beyond vLLM's own calls; an extension of its worker class."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safetensors import safe_open
from torch import Tensor

from populora.rollouts.fingerprint import fingerprint, module_path


class AdapterInspector:
    """Reads adapters back from the tensors that the layers multiply with.

    Works where one worker holds the whole model; shards of a parallel one have digests of their own.
    """

    model_runner: Any

    def adapter_fingerprint(self, number: int, folder: str) -> str:
        """Return the digest of an adapter as it is in its slot.

        Args:
            number: vLLM's id of the adapter.
            folder: Where it was loaded from; gives the names of its modules, no weights.
        """
        from vllm.lora.utils import parse_fine_tuned_lora_name

        manager = self.model_runner.lora_manager._adapter_manager
        manager.activate_adapter(number)
        slot = manager.lora_index_to_id.index(number)
        rank = manager.get_adapter(number).rank
        slices = dict(_slices(manager))
        mapper = getattr(manager.model, "hf_to_vllm_mapper", None)
        renames = None if mapper is None else mapper.get_rename_mapper()
        factors = []
        for key in _keys(folder):
            a, b = slices[parse_fine_tuned_lora_name(key, renames)[0]]
            factors.append((module_path(key), a[slot, 0, :rank], b[slot, 0, :, :rank]))
        return fingerprint(factors)


def _keys(folder: str) -> list[str]:
    with safe_open(Path(folder) / "adapter_model.safetensors", "pt") as file:
        return [key for key in file.keys() if ".lora_A." in key]  # noqa: SIM118


def _slices(manager: Any) -> Iterator[tuple[str, tuple[Tensor, Tensor]]]:
    """Yield each adaptable module with the stacked factors of all slots, merged layers taken apart.

    A is (slots, 1, max rank, in), B (slots, 1, out, max rank).
    """
    for name, layer in manager.modules.items():
        stacks = (layer.lora_a_stacked, layer.lora_b_stacked)
        a, b = ((stack,) if isinstance(stack, Tensor) else stack for stack in stacks)
        yield from zip(manager.packed_modules.get(name, [name]), zip(a, b, strict=True), strict=True)
