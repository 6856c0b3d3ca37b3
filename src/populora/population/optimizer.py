"""One AdamW for all adapters, with a parameter group for each member."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from populora.config import LearningConfig
from populora.errors import CheckpointError
from populora.population.bank import AdapterBank

_KEYS = ("exp_avg", "exp_avg_sq", "step")


def build_optimizer(bank: AdapterBank, config: LearningConfig) -> torch.optim.AdamW:
    """Return AdamW (Loshchilov and Hutter, 2019) with one group a member; ``group["member"]`` names it.

    Members step on their own: one without gradients (``grad`` None) is left bit for bit as it is, its
    moments, step count and weight decay included.
    """
    groups = [{"params": list(bank.named_factors(name)), "member": name} for name in bank.names]
    return torch.optim.AdamW(
        groups, lr=config.learning_rate, betas=config.betas, weight_decay=config.weight_decay
    )


def reset_member(optimizer: torch.optim.Optimizer, name: str) -> None:
    """Forget the moments and the step count of ``name``, as for a child (the paper is silent)."""
    for parameter in _group(optimizer, name)["params"]:
        optimizer.state.pop(parameter, None)


def moments(optimizer: torch.optim.Optimizer, name: str) -> dict[str, Tensor]:
    """Return ``name``'s optimizer state, ``<module>.<factor>.<exp_avg|exp_avg_sq|step>``, not copied.

    Empty for a member that has not stepped.
    """
    group = _group(optimizer, name)
    return {
        f"{label}.{key}": optimizer.state[parameter][key]
        for label, parameter in zip(group["param_names"], group["params"], strict=True)
        if parameter in optimizer.state
        for key in _KEYS
    }


def load_moments(optimizer: torch.optim.Optimizer, name: str, state: Mapping[str, Tensor]) -> None:
    """Replace ``name``'s optimizer state by a copy of what :func:`moments` returned.

    Raises:
        CheckpointError: the state belongs to other parameters; the optimizer is then unchanged.
    """
    group = _group(optimizer, name)
    labelled = dict(zip(group["param_names"], group["params"], strict=True))
    present = {key.rpartition(".")[0] for key in state}
    expected = {f"{label}.{key}" for label in present for key in _KEYS}
    if not present <= labelled.keys() or state.keys() != expected:
        raise CheckpointError(
            f"the optimizer state of {name!r} does not fit its parameters: "
            f"{sorted((present - labelled.keys()) | (expected ^ state.keys()))[:4]}"
        )
    new = {}
    for label in present:
        parameter = labelled[label]
        for key in ("exp_avg", "exp_avg_sq"):
            found = state[f"{label}.{key}"]
            if found.shape != parameter.shape:
                raise CheckpointError(
                    f"the optimizer state of {name!r} has shape {tuple(found.shape)} at {label}.{key}, "
                    f"expected {tuple(parameter.shape)}"
                )
        new[parameter] = {
            "exp_avg": state[f"{label}.exp_avg"].to(parameter.device, copy=True),
            "exp_avg_sq": state[f"{label}.exp_avg_sq"].to(parameter.device, copy=True),
            "step": state[f"{label}.step"].to("cpu", copy=True),
        }
    reset_member(optimizer, name)
    optimizer.state.update(new)


def _group(optimizer: torch.optim.Optimizer, name: str) -> dict[str, Any]:
    for group in optimizer.param_groups:
        if group["member"] == name:
            return group
    known = [group["member"] for group in optimizer.param_groups]
    raise ValueError(f"the optimizer has no member {name!r}; known: {', '.join(known)}")
