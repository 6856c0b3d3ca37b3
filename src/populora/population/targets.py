"""Which modules of a base get an adapter."""

import re
from collections.abc import Sequence

from torch import nn
from transformers import PreTrainedModel

from populora.errors import ConfigError


def target_paths(base: PreTrainedModel, target_modules: str | list[str]) -> list[str]:
    """Resolve the modules to adapt, as PEFT does, to full paths of linear layers outside the head.

    Args:
        base: The model before any adapter.
        target_modules: ``all-linear``, a list of module names, or a regular expression over full paths.

    Raises:
        ConfigError: a name or the expression matches no linear layer, or the base has no head.
    """
    head = base.get_output_embeddings()
    if head is None:
        raise ConfigError(f"{type(base).__name__} has no language-model head; use a causal language model")
    linear = [path for path, m in base.named_modules() if isinstance(m, nn.Linear) and m is not head]
    if target_modules == "all-linear":
        return linear
    known = ", ".join(sorted({path.rpartition(".")[2] for path in linear}))
    if isinstance(target_modules, str):
        return _matching(target_modules, linear, known)
    found: set[str] = set()
    for name in target_modules:
        matching = {path for path in linear if f".{path}".endswith(f".{name}")}
        if not matching:
            raise ConfigError(
                f"model.adapter.target_modules names {name!r}, which is no linear module of the base; "
                f"available: {known}, or all-linear"
            )
        found |= matching
    return sorted(found)


def _matching(expression: str, paths: Sequence[str], known: str) -> list[str]:
    try:
        found = [path for path in paths if re.fullmatch(expression, path)]
    except re.error as error:
        raise ConfigError(
            f"model.adapter.target_modules {expression!r} is no regular expression: {error}"
        ) from error
    if not found:
        raise ConfigError(
            f"model.adapter.target_modules {expression!r} matches no path of a linear module, such as "
            f"{paths[0]}; give a list of names ({known}), a regular expression, or all-linear"
        )
    return found
