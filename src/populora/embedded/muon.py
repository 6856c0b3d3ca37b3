"""Muon in float32, with matrices of one shape orthogonalised together.

``torch.optim.Muon`` works in bfloat16 and one matrix at a time, which is slow on a CPU.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def orthogonalise(stack: torch.Tensor, iterations: int = 5) -> torch.Tensor:
    """Newton-Schulz iteration towards the nearest semi-orthogonal matrices.

    Args:
        stack: Matrices, stacked along the first dimension.
        iterations: Number of iterations.
    """
    tall = stack.shape[1] > stack.shape[2]
    x: torch.Tensor = stack.transpose(1, 2) if tall else stack
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    a, b, c = _COEFFICIENTS
    for _ in range(iterations):
        gram = x @ x.transpose(1, 2)
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.transpose(1, 2) if tall else x


class Muon(torch.optim.Optimizer):
    """Momentum whose update is orthogonalised; for two-dimensional weights.

    Args:
        params: Matrices.
        lr: Learning rate; updates are scaled by 0.2 sqrt(max(rows, columns)), so that it and the
            weight decay compare with AdamW's.
        momentum: Nesterov momentum.
        weight_decay: Decoupled weight decay.
        apply: Maps a function over the shapes of weights; of an executor, it works on them at once.
    """

    def __init__(
        self,
        params: Iterable[torch.nn.Parameter],
        lr: float,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
        apply: Callable[..., Iterable[None]] = map,
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        self._apply = apply

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Updates all matrices that have a gradient."""
        assert closure is None
        for group in self.param_groups:
            shapes: defaultdict[torch.Size, list[torch.Tensor]] = defaultdict(list)
            for weight in group["params"]:
                shapes[weight.shape].append(weight)
            by_cost = sorted(shapes.values(), key=lambda same: -len(same) * same[0].numel())
            list(self._apply(lambda same, group=group: self._update(same, group), by_cost))

    @torch.no_grad()
    def _update(self, weights: list[torch.Tensor], group: dict[str, Any]) -> None:
        gradients = torch.stack([w.grad for w in weights if w.grad is not None])
        state = self.state[weights[0]]
        buffer = state.setdefault("momentum", torch.zeros_like(gradients))
        buffer.lerp_(gradients, 1 - group["momentum"])
        update = orthogonalise(gradients.lerp(buffer, group["momentum"]))
        scale = group["lr"] * 0.2 * max(weights[0].shape) ** 0.5
        for weight, change in zip(weights, update, strict=True):
            weight.mul_(1 - group["lr"] * group["weight_decay"]).sub_(change, alpha=scale)
