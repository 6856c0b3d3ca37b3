"""One policy-gradient step for every member at once: mixed micro-batches forward and backward, then one optimizer step."""

import logging
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from populora.config import LearningConfig
from populora.learning.advantages import advantages as estimators
from populora.learning.advantages import sample_advantages
from populora.learning.logprobs import completion_logprobs
from populora.learning.losses import policy_loss
from populora.learning.packing import MicroBatch, micro_batches
from populora.learning.samples import Sample, roster
from populora.population.bank import AdapterBank
from populora.population.layout import Layout
from populora.records import Member, MemberUpdate, StepTimings, Update
from populora.timing import Lap

logger = logging.getLogger(__name__)


def gradient_step(
    bank: AdapterBank,
    optimizer: torch.optim.Optimizer,
    samples: Sequence[Sample],
    config: LearningConfig,
    temperature: float,
    backward: Callable[[Tensor], object] = Tensor.backward,
    step: Callable[[], object] | None = None,
) -> Update:
    """Move every member along the gradient of its own loss, the token-level mean over its own samples.

    A member keeps weights and optimizer state bit for bit when all its groups are flat, or when its loss or gradient
    is not finite: its ``grad`` is then None. The optimizer steps exactly once in every case.

    Args:
        bank: adapters of all members.
        optimizer: over the bank's parameters.
        samples: of one batch, members in any mixture.
        config: estimator, clips, norms and token budget.
        temperature: the one the samples were drawn at.
        backward: called with each micro-batch's loss, for example a LightningModule's ``manual_backward``.
        step: called once at the end, for example a LightningOptimizer's ``step``; None: ``optimizer.step``.

    Returns:
        What happened to each member that has samples, in order of first appearance.
    """
    lap, forward, backprop = Lap(bank.device), 0.0, 0.0
    optimizer.zero_grad(set_to_none=True)
    members = roster(samples)
    advantages = sample_advantages(samples, estimators[config.advantage])
    batches = micro_batches(samples, advantages, config.tokens_per_micro_batch, config.kl_weight > 0)
    sums = torch.zeros(len(members), 6, device=bank.device)
    pack = lap()
    for batch in batches:
        loss, part = _forward(bank, batch.to(bank.device), len(members), config, temperature)
        sums += part
        forward += lap()
        backward(loss)
        backprop += lap()
    judged = list(zip(samples, advantages.tolist(), strict=True))
    updates = [
        _finish(bank, member, [(s, a) for s, a in judged if s.member == member], row, config)
        for member, row in zip(members, sums.tolist(), strict=True)
    ]
    (step or optimizer.step)()
    _warn_of_mismatch(updates, config.mismatch_warning)
    return Update(
        tuple(updates),
        tokens=sum(batch.sequence_tokens for batch in batches),
        passed_tokens=sum(len(batch.layout.input_ids) for batch in batches),
        timings=StepTimings(pack, forward, backprop, optimizer=lap()),
    )


def _forward(
    bank: AdapterBank, batch: MicroBatch, members: int, config: LearningConfig, temperature: float
) -> tuple[Tensor, Tensor]:
    """Return a micro-batch's loss, and sums over its tokens by member.

    Returns:
        The loss, to be differentiated, and (members, 6): weighted loss, tokens, entropy, clipped tokens, mismatch, KL.
        A value that is not finite stays within its member's row.
    """
    reference = None
    if config.kl_weight > 0:
        with torch.no_grad():
            reference, _ = _logprobs(bank, batch, batch.layout.without_adapters(), temperature)
    logprobs, entropy = _logprobs(bank, batch, batch.layout, temperature)
    loss, metrics = policy_loss(logprobs, batch, config, reference_logprobs=reference)
    columns = [
        batch.weights * metrics.loss,
        torch.ones_like(entropy),
        entropy,
        metrics.clipped,
        metrics.mismatch,
        metrics.kl,
    ]
    own = torch.arange(members, device=batch.members.device)[:, None] == batch.members
    return loss, torch.where(own[:, None], torch.stack(columns), 0.0).sum(-1)


def _logprobs(
    bank: AdapterBank, batch: MicroBatch, layout: Layout, temperature: float
) -> tuple[Tensor, Tensor]:
    hidden = bank.hidden_states(layout).index_select(0, batch.sources)
    return completion_logprobs(
        hidden, bank.head, bank.head_bias, batch.targets, temperature / bank.logit_scale
    )


def _finish(
    bank: AdapterBank,
    member: Member,
    judged: Sequence[tuple[Sample, float]],
    sums: Sequence[float],
    config: LearningConfig,
) -> MemberUpdate:
    """Clip a member's gradient, or drop it when it is not finite, and sum up its part of the step."""
    loss, tokens, *metrics = sums
    parameters = bank.parameters_of(member.name)
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = get_total_norm(gradients)
    finite = math.isfinite(loss) and math.isfinite(norm.item())
    if finite:
        clip_grads_with_norm_(parameters, config.max_gradient_norm, norm)
    else:
        logger.warning("%s is not stepped: loss %g, gradient norm %g", member.name, loss, norm.item())
        for parameter in parameters:
            parameter.grad = None
    entropy, clipped, mismatch, kl = (value / tokens if tokens else math.nan for value in metrics)
    groups = {sample.group for sample, _ in judged}
    live = {sample.group for sample, advantage in judged if advantage != 0}
    return MemberUpdate(
        member=member,
        stepped=finite and bool(gradients),
        samples=len(judged),
        tokens=sum(len(sample.completion_ids) for sample, _ in judged),
        flat_share=1 - len(live) / len(groups),
        loss=loss,
        gradient_norm=norm.item(),
        entropy=entropy,
        clip_share=clipped,
        mismatch=mismatch,
        kl=kl,
    )


def _warn_of_mismatch(updates: Sequence[MemberUpdate], bound: float) -> None:
    for update in updates:
        if update.mismatch > bound:
            logger.warning(
                "%s: trainer and engine log-probabilities differ by %.3g on average, more than %.3g; check that the "
                "engine holds version %d and uses the trainer's temperature and type",
                update.member.name,
                update.mismatch,
                bound,
                update.member.version,
            )
