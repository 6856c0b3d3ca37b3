"""PEFT's adapter format, which PEFT and vLLM load: a folder with a config and a file of tensors."""

import json
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from populora.errors import CheckpointError
from populora.population.lowrank import Adapter, LowRank

CONFIG_FILE, WEIGHTS_FILE = "adapter_config.json", "adapter_model.safetensors"
_PREFIX = "base_model.model."


def config_text(rank: int, alpha: float, target_modules: list[str], base: str) -> str:
    """Return the content of an ``adapter_config.json``."""
    settings = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": rank,
        "lora_alpha": alpha,
        "target_modules": target_modules,
        "inference_mode": True,
    }
    return json.dumps(settings, indent=2)


def scale_of(config: str) -> tuple[float, int]:
    """Return α and the rank of an ``adapter_config.json``.

    Raises:
        CheckpointError: the text is not such a config.
    """
    try:
        settings = json.loads(config)
        return float(settings["lora_alpha"]), int(settings["r"])
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"not the {CONFIG_FILE} of a LoRA adapter: {error!r}") from error


def to_tensors(adapter: Adapter) -> dict[str, Tensor]:
    """Return the factors under PEFT's names."""
    return {
        f"{_PREFIX}{path}.lora_{factor}.weight": tensor.contiguous()
        for path, update in adapter.items()
        for factor, tensor in (("A", update.a), ("B", update.b))
    }


def from_tensors(tensors: dict[str, Tensor]) -> dict[str, LowRank]:
    """Return the float32 factors by module path.

    Raises:
        CheckpointError: a factor lacks its partner, or a tensor is no LoRA factor.
    """
    paths = {key.removeprefix(_PREFIX).rpartition(".lora_")[0] for key in tensors}
    keys = {path: [f"{_PREFIX}{path}.lora_{factor}.weight" for factor in "AB"] for path in paths}
    unpaired = tensors.keys() ^ {key for pair in keys.values() for key in pair}
    if unpaired:
        raise CheckpointError(f"expected lora_A and lora_B of each module, unpaired: {sorted(unpaired)[:4]}")
    return {path: LowRank(tensors[a].float(), tensors[b].float()) for path, (a, b) in keys.items()}


def write_folder(folder: Path, config: str, tensors: dict[str, Tensor]) -> None:
    """Write an adapter folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG_FILE).write_text(config)
    save_file(tensors, folder / WEIGHTS_FILE, metadata={"format": "pt"})


def read_folder(folder: Path) -> tuple[str, dict[str, Tensor]]:
    """Read an adapter folder.

    Raises:
        CheckpointError: it cannot be read.
    """
    try:
        return (folder / CONFIG_FILE).read_text(), load_file(folder / WEIGHTS_FILE)
    except (OSError, ValueError, SafetensorError) as error:
        raise CheckpointError(f"cannot read the adapter folder {folder}: {error}") from error
