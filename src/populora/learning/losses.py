"""The clipped policy-gradient loss per token.

Three policies take part: the *engine* that sampled the tokens, the trainer's policy at the start of the batch (*old*),
and the trainer's present one (*new*). The clip bounds new/old; the engine differs from old by rounding and kernels only,
and that gap is corrected by a separate importance weight, so neither hides in the other. With one update a batch, as
here, old is new without its gradient: the ratio is 1 in value, its gradient is REINFORCE's, and the clip has
nothing to do until a batch is used for more than one update.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from populora.config import LearningConfig
from populora.learning.packing import MicroBatch

LOG_RATIO_BOUND = 20.0
"""Log-ratios are clamped to ± this before they are exponentiated, as in verl."""


@dataclass(frozen=True, eq=False)
class TokenMetrics:
    """What happened at each token; (T,) each, without gradient."""

    loss: Tensor
    """Unweighted."""
    clipped: Tensor
    """1 where the ratio was clipped or the importance weight capped, else 0."""
    mismatch: Tensor
    """|log p(trainer) − log p(engine)|."""
    kl: Tensor
    """Estimate of KL(policy ‖ base); 0 without a reference."""


def policy_loss(
    logprobs: Tensor,
    batch: MicroBatch,
    config: LearningConfig,
    old_logprobs: Tensor | None = None,
    reference_logprobs: Tensor | None = None,
) -> tuple[Tensor, TokenMetrics]:
    """Return Σ weight · (importance · clipped surrogate + kl_weight · KL), summed over the micro-batch's tokens.

    The surrogate is PPO's (arXiv 1707.06347, equation 7) with DAPO's higher upper clip and token-level mean (arXiv
    2503.14476).

    Args:
        logprobs: (T,) of the new policy, with gradient.
        batch: targets' advantages, engine log-probabilities and weights, (T,) each.
        config: clips, cap and KL weight.
        old_logprobs: (T,) of the policy at the start of the batch; None: ``logprobs`` without gradient.
        reference_logprobs: (T,) of the base; None: no KL term.
    """
    old = logprobs.detach() if old_logprobs is None else old_logprobs
    ratio = _ratio(logprobs, old)
    bounded = ratio.clamp(1 - config.clip_low, 1 + config.clip_high)
    surrogate = torch.minimum(ratio * batch.advantages, bounded * batch.advantages)
    importance = importance_weight(old, batch.engine_logprobs, config.importance_cap)
    kl = torch.zeros_like(ratio) if reference_logprobs is None else k3(logprobs, reference_logprobs)
    loss = config.kl_weight * kl - importance * surrogate
    clipped = (ratio * batch.advantages > surrogate) | (importance >= config.importance_cap)
    metrics = TokenMetrics(
        loss=loss.detach(),
        clipped=clipped.float(),
        mismatch=(logprobs.detach() - batch.engine_logprobs).abs(),
        kl=kl.detach(),
    )
    return (batch.weights * loss).sum(), metrics


def importance_weight(old: Tensor, engine: Tensor, cap: float) -> Tensor:
    """Return min(p(old) / p(engine), cap) per token: truncated importance sampling.

    Yao et al., "Your efficient RL framework secretly brings you off-policy RL training", 2025
    (https://fengyao.notion.site/off-policy-rl); also in TRL and verl.
    """
    return _ratio(old, engine).clamp(max=cap)


def k3(logprobs: Tensor, reference: Tensor) -> Tensor:
    """Return the k3 estimate of KL(policy ‖ reference) per token, never negative: http://joschu.net/blog/kl-approx.html."""
    gap = (reference - logprobs).clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND)
    return gap.expm1() - gap


def _ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    return (numerator - denominator).clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND).exp()
