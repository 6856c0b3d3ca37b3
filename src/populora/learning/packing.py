"""Samples of all members, mixed, into padded micro-batches."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from populora.learning.samples import Sample, roster

PAD = 0
"""Any valid id: the attention mask hides it and no loss reads it."""


@dataclass(frozen=True, eq=False)
class MicroBatch:
    """B sequences padded to length L, and the T completion tokens in them, row by row.

    A row is prompt and completion without the last token, which predicts nothing. ``positions`` is the one mask:
    the tokens it names are the tokens in the loss and, summed over the member's batch, in the loss's denominator.
    """

    input_ids: Tensor
    """(B, L) int64, padded on the right."""
    attention_mask: Tensor
    """(B, L) int64, 1 for a token and 0 for padding."""
    positions: Tensor
    """(T,) int64, indices into the B·L flattened hidden states of those that predict the targets."""
    targets: Tensor
    """(T,) int64, completion tokens."""
    advantages: Tensor
    """(T,) float32, each sample's advantage at each of its tokens."""
    engine_logprobs: Tensor
    """(T,) float32."""
    weights: Tensor
    """(T,) float32, 1 / completion tokens of the member in the *whole* batch: sums are token-level means."""
    members: Tensor
    """(T,) int64, index of the token's member in ``roster(samples)``."""
    adapters: tuple[str, ...]
    """B names; equal names are adjacent."""

    @property
    def tokens(self) -> int:
        """Tokens of the rows, padding excluded."""
        return int(self.attention_mask.sum())

    def to(self, device: torch.device) -> Self:
        """Return the same micro-batch with its tensors on another device."""
        tensors = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "adapters"}
        return replace(self, **{name: tensor.to(device) for name, tensor in tensors.items()})


def micro_batches(
    samples: Sequence[Sample], advantages: Tensor, token_budget: int, keep_zeros: bool = False
) -> list[MicroBatch]:
    """Pack samples, longest first, into micro-batches of at most ``token_budget`` tokens, padding included.

    A sample longer than the budget gets a micro-batch of its own. A sample with zero advantage has zero loss and zero
    gradient, so it is left out of the forward pass, but its tokens still count in ``weights``. ``keep_zeros`` keeps
    such samples (a KL term has a gradient there too), except those of a member whose advantages are all zero: that
    member is not trained at all.

    Args:
        samples: of all members.
        advantages: (N,).
        token_budget: most tokens of one forward pass.
        keep_zeros: pack samples with zero advantage too.
    """
    columns = _Columns(samples, advantages)
    order = columns.order(keep_zeros)
    batches = []
    start = 0
    while start < len(order):
        rows = max(1, token_budget // int(columns.length[order[start]]))
        batches.append(columns.pack(order[start : start + rows]))
        start += rows
    return batches


class _Columns:
    """The samples by column: one array entry per sample."""

    def __init__(self, samples: Sequence[Sample], advantages: Tensor) -> None:
        number = {member: index for index, member in enumerate(roster(samples))}
        self.samples = samples
        self.advantage = advantages.detach().cpu().numpy()
        self.member = np.array([number[sample.member] for sample in samples], dtype=np.int64)
        self.prompt = np.array([len(sample.prompt_ids) for sample in samples], dtype=np.int64)
        self.completion = np.array([len(sample.completion_ids) for sample in samples], dtype=np.int64)
        self.length = self.prompt + self.completion - 1
        member_tokens = np.bincount(self.member, weights=self.completion)
        self.weight = 1.0 / np.maximum(member_tokens, 1.0)[self.member]

    def order(self, keep_zeros: bool) -> NDArray[np.int64]:
        """Indices of the samples to pack, longest first, ties in the order given."""
        signal = self.advantage != 0
        if keep_zeros:
            signal = (np.bincount(self.member, weights=signal) > 0)[self.member]
        kept = np.flatnonzero(signal & (self.completion > 0))
        return kept[np.argsort(-self.length[kept], kind="stable")]

    def pack(self, rows: NDArray[np.int64]) -> MicroBatch:
        rows = rows[np.argsort(self.member[rows], kind="stable")]
        chosen = [self.samples[row] for row in rows]
        prompt, completion, length = self.prompt[rows], self.completion[rows], self.length[rows]
        column = np.arange(length.max())
        mask = column < length[:, None]
        input_ids = np.full(mask.shape, PAD, dtype=np.int64)
        input_ids[mask] = np.concatenate([(*s.prompt_ids, *s.completion_ids[:-1]) for s in chosen])
        predicts = mask & (column >= prompt[:, None] - 1)

        def per_token(values: NDArray[np.generic]) -> Tensor:
            return torch.from_numpy(np.repeat(values[rows], completion))

        return MicroBatch(
            input_ids=torch.from_numpy(input_ids),
            attention_mask=torch.from_numpy(mask.astype(np.int64)),
            positions=torch.from_numpy(np.flatnonzero(predicts)),
            targets=torch.from_numpy(np.concatenate([s.completion_ids for s in chosen])),
            advantages=per_token(self.advantage).float(),
            engine_logprobs=torch.from_numpy(np.concatenate([s.logprobs for s in chosen])).float(),
            weights=per_token(self.weight).float(),
            members=per_token(self.member),
            adapters=tuple(s.member.name for s in chosen),
        )
