"""Log-probabilities of given tokens without ever holding (all tokens × vocabulary).

The gradient of one token's log-probability with respect to its own hidden state needs nothing from upstream but a
scalar: ∂ log p(y) / ∂h = (w_y − Σ_v p(v) w_v) / temperature. So the forward pass computes it while a chunk's
probabilities exist, keeps T × H numbers, and the backward pass is one product: two matrix products in all, as many as
full logits cost with a frozen head, and none of the memory.
"""

from typing import Any

import torch
from torch import Tensor

CHUNK_TOKENS = 256
"""Tokens whose logits exist at once, twice over, in float32."""


def completion_logprobs(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    temperature: float,
    chunk_tokens: int = CHUNK_TOKENS,
) -> tuple[Tensor, Tensor]:
    """Return log softmax(logits / temperature) at the targets, and the entropy of that distribution.

    Logits, log-sum-exp and results are float32 whatever the inputs' type. The head is frozen: only ``hidden`` gets a
    gradient, and only through the log-probabilities.

    Args:
        hidden: (T, H) last hidden states at the positions that predict the targets.
        weight: (V, H) of the language-model head.
        bias: (V,) of the head, if it has one.
        targets: (T,) int64.
        temperature: positive divisor of the logits; the one the tokens were sampled with.
        chunk_tokens: tokens whose logits exist at once.

    Returns:
        Log-probabilities (T,) and entropies (T,) in nats, not differentiable.

    Raises:
        ValueError: the temperature is not positive.
    """
    if temperature <= 0:
        raise ValueError(
            f"temperature must be positive, got {temperature}; greedy samples have no policy gradient"
        )
    result: tuple[Tensor, Tensor] = _ChunkedLogprobs.apply(  # type: ignore[no-untyped-call]
        hidden, weight, bias, targets, temperature, chunk_tokens
    )
    return result


class _ChunkedLogprobs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        temperature: float,
        chunk_tokens: int,
    ) -> tuple[Tensor, Tensor]:
        logprobs = torch.empty(len(targets), dtype=torch.float32, device=hidden.device)
        entropy = torch.empty_like(logprobs)
        slope = torch.empty_like(hidden, dtype=torch.float32) if ctx.needs_input_grad[0] else None
        for start in range(0, len(targets), chunk_tokens):
            part = slice(start, start + chunk_tokens)
            logits = _product(hidden[part], weight.T)
            if bias is not None:
                logits += bias
            probabilities, logprobs[part], entropy[part] = _softmax(logits.div_(temperature), targets[part])
            if slope is not None:
                difference = probabilities.neg_()
                difference.scatter_add_(1, targets[part, None], torch.ones_like(logprobs[part, None]))
                slope[part] = _product(difference, weight).div_(temperature)
        ctx.save_for_backward(slope)
        ctx.dtype = hidden.dtype
        ctx.mark_non_differentiable(entropy)
        return logprobs, entropy

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (slope,) = ctx.saved_tensors
        return (gradients[0][:, None] * slope).to(ctx.dtype), None, None, None, None, None


def _softmax(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Probabilities (C, V), log-probability of the targets (C,) and entropy (C,); overwrites the logits."""
    logits -= logits.amax(1, keepdim=True)
    chosen = logits.gather(1, targets[:, None])
    probabilities = logits.exp()
    total = probabilities.sum(1, keepdim=True)
    probabilities /= total
    log_total = total.log()
    expected = torch.linalg.vecdot(probabilities, logits)
    return probabilities, (chosen - log_total)[:, 0], log_total[:, 0] - expected


def _product(left: Tensor, right: Tensor) -> Tensor:
    """Matrix product with a float32 result; a GPU multiplies in the head's own type and accumulates in float32."""
    if right.is_cuda and right.dtype != torch.float32:
        return torch.mm(left.to(right.dtype), right, out_dtype=torch.float32)
    return left.float() @ right.float()
