"""Finding and loading the frozen base: the embedded one, a local folder, or a hub id."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from populora.config import BaseConfig
from populora.errors import ConfigError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

EMBEDDED = "embedded"
CONFIG_FILE = "config.json"
_TAIL = 2**16


def locate_base(config: BaseConfig) -> Path:
    """Return the local folder of the base, downloading it from the hub when it is a hub id.

    Raises:
        ConfigError: there is no such folder and no such model on a reachable hub.
    """
    return local_folder(config) or _download(config)


def locate_config(config: BaseConfig) -> Path:
    """Return the ``config.json`` of the base without downloading anything.

    Raises:
        ConfigError: the base is not on this machine.
    """
    folder = local_folder(config)
    if folder is not None:
        return folder / CONFIG_FILE
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(
            hf_hub_download(config.path, CONFIG_FILE, revision=config.revision, local_files_only=True)
        )
    except HFValidationError as error:
        raise ConfigError(
            f"model.base.path: there is no folder {config.path!r}, and it cannot be a hub id either"
        ) from error
    except LocalEntryNotFoundError as error:
        raise ConfigError(
            f"model.base.path: {config.path!r} is neither a folder here nor downloaded yet; a run downloads it, "
            f"and to see sizes before that, `hf download {config.path} {CONFIG_FILE}` is enough"
        ) from error


def local_folder(config: BaseConfig) -> Path | None:
    """Return the folder of a base that is already here, None for what may be a hub id.

    Raises:
        ConfigError: the path is that of a folder, and there is none or no saved model in it.
    """
    if config.path == EMBEDDED:
        from populora.embedded import model_path

        return model_path()
    folder = Path(config.path).expanduser()
    if not folder.is_dir():
        if config.path.count("/") > 1 or config.path.startswith((".", "~", "/")):
            raise ConfigError(f"model.base.path: there is no folder {folder}")
        return None
    if not (folder / CONFIG_FILE).is_file():
        raise ConfigError(f"model.base.path: {folder} has no {CONFIG_FILE}, so it is not a saved model")
    return folder


def _download(config: BaseConfig) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(
            snapshot_download(
                config.path, revision=config.revision, ignore_patterns=["*.gguf", "*.pth", "original/*"]
            )
        )
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError(
            f"model.base.path: {config.path!r} is neither 'embedded', nor a folder here, nor a model on a "
            f"reachable hub ({type(error).__name__}: {reason}). Give the path of a folder with config.json, "
            "or check the hub id and the network"
        ) from error


def base_digest(folder: Path) -> str:
    """Return a digest (16 hex characters) by which another base, or other weights of the same one, are told apart.

    It covers the config, and of each file of weights the size and the last 64 KiB.
    """
    digest = hashlib.sha256((folder / CONFIG_FILE).read_bytes())
    for path in sorted([*folder.glob("*.safetensors"), *folder.glob("*.bin")]):
        size = path.stat().st_size
        with path.open("rb") as file:
            file.seek(max(0, size - _TAIL))
            digest.update(f"{path.name} {size}".encode() + file.read())
    return digest.hexdigest()[:16]


def load_tokenizer(folder: Path) -> "PreTrainedTokenizerBase":
    """Load the tokenizer of a base folder; one without a padding token pads with its end token."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_model(folder: Path, dtype: "torch.dtype") -> "PreTrainedModel":
    """Load the weights of a base folder, frozen, in evaluation mode."""
    from transformers import AutoModelForCausalLM
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    return model.requires_grad_(False).eval()


def prompt_set(config: BaseConfig, tokenizer: "PreTrainedTokenizerBase") -> str:
    """Return the name or folder of the prompt templates, resolving ``auto``."""
    if config.prompts != "auto":
        return config.prompts
    if config.path == EMBEDDED:
        return "compact"
    return "chat" if tokenizer.chat_template else "base"


def weight_dtype(config: BaseConfig, accelerated: bool) -> "torch.dtype":
    """Return the weights' type, resolving ``auto``: float32 on a CPU, bfloat16 on an accelerator."""
    import torch

    name = config.dtype if config.dtype != "auto" else ("bfloat16" if accelerated else "float32")
    dtype: torch.dtype = getattr(torch, name)
    return dtype
