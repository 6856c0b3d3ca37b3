"""A run that stops and goes on is the run that did not stop."""

from collections.abc import Callable
from typing import Any

import torch

Run = Callable[..., dict[str, Any]]


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        return {k: v for key, item in value.items() for k, v in _flat(item, f"{path}/{key}").items()}
    if isinstance(value, list | tuple):
        return {k: v for i, item in enumerate(value) for k, v in _flat(item, f"{path}/{i}").items()}
    return {path: value}


def _method_state(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Everything that decides how a run goes on; not where Lightning's own loops and files are."""
    callbacks = {k: v for k, v in checkpoint["callbacks"].items() if "Checkpoint" not in k}
    keys = ("adapters", "moments", "populora", "RolloutDataModule")
    return _flat({**{key: checkpoint[key] for key in keys}, "callbacks": callbacks})


def _differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    assert one.keys() == other.keys()
    return [
        key
        for key, value in one.items()
        if not (torch.equal(value, other[key]) if isinstance(value, torch.Tensor) else value == other[key])
    ]


def test_resumed_run_equals_uninterrupted_run(run: Run) -> None:
    whole = _method_state(run("whole", 6))
    halfway = _method_state(run("halves", 3))
    resumed = _method_state(run("halves", 6, "--ckpt_path=last"))
    assert _differences(whole, resumed) == []
    assert _differences(
        {k: whole[k] for k in halfway if k in whole}, {k: halfway[k] for k in halfway if k in whole}
    )


def test_run_with_more_iterations_goes_on_from_its_end(run: Run) -> None:
    run("longer", 2)
    assert run("longer", 4, "--ckpt_path=last")["populora"]["iteration"] == 4
