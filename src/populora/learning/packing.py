"""Samples of all members, mixed, into micro-batches without padding in which responses to a prompt share it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from populora.learning.samples import Sample, roster
from populora.population.layout import Bundle, Layout, lay_out


@dataclass(frozen=True, eq=False)
class MicroBatch:
    """Sequences of some samples, and the N completion tokens in them, sample by sample.

    A sequence is prompt and completion without the last token, which predicts nothing. The tokens in ``targets`` are the
    tokens in the loss and, summed over the member's batch, in the loss's denominator.
    """

    layout: Layout
    """Of the sequences, T tokens in all."""
    sources: Tensor
    """(N,) int64, tokens of the layout whose hidden states predict the targets; a prompt's last one may repeat."""
    targets: Tensor
    """(N,) int64, completion tokens."""
    advantages: Tensor
    """(N,) float32, each sample's advantage at each of its tokens."""
    engine_logprobs: Tensor
    """(N,) float32."""
    weights: Tensor
    """(N,) float32, 1 / completion tokens of the member in the *whole* batch: sums are token-level means."""
    members: Tensor
    """(N,) int64, index of the token's member in ``roster(samples)``."""
    sequence_tokens: int
    """Tokens of the sequences; more than the layout has, where they share prompts."""

    def to(self, device: torch.device) -> Self:
        """Return the same micro-batch with its tensors on another device."""
        moved = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "sequence_tokens"}
        return replace(self, **{name: value.to(device) for name, value in moved.items()})


def micro_batches(
    samples: Sequence[Sample], advantages: Tensor, token_budget: int, keep_zeros: bool = False
) -> list[MicroBatch]:
    """Pack samples into micro-batches of at most ``token_budget`` tokens, shared prompts counted once.

    Samples of one member and prompt stay together, and sequences of like length, longest first: attention pads them to
    one. A sequence longer than the budget gets a micro-batch of its own. A sample with zero advantage has zero loss
    and zero gradient, so it is left out of the forward pass, but its tokens still count in ``weights``. ``keep_zeros``
    keeps such samples (a KL term has a gradient there too), except those of a member whose advantages are all zero:
    that member is not trained at all.

    Args:
        samples: of all members.
        advantages: (N,).
        token_budget: most tokens of one forward pass.
        keep_zeros: pack samples with zero advantage too.
    """
    columns = _Columns(samples, advantages)
    return [columns.pack(rows) for rows in columns.split(columns.order(keep_zeros), token_budget)]


class _Columns:
    """The samples by column: one array entry per sample."""

    def __init__(self, samples: Sequence[Sample], advantages: Tensor) -> None:
        number = {member: index for index, member in enumerate(roster(samples))}
        prompts: dict[tuple[str, tuple[int, ...]], int] = {}
        self.samples = samples
        self.advantage = advantages.detach().cpu().numpy()
        self.member = np.array([number[sample.member] for sample in samples], dtype=np.int64)
        self.bundle = np.array(
            [prompts.setdefault((s.member.name, s.prompt_ids), len(prompts)) for s in samples], dtype=np.int64
        )
        self.prompt = np.array([len(sample.prompt_ids) for sample in samples], dtype=np.int64)
        self.completion = np.array([len(sample.completion_ids) for sample in samples], dtype=np.int64)
        self.length = self.prompt + self.completion - 1
        member_tokens = np.bincount(self.member, weights=self.completion)
        self.weight = 1.0 / np.maximum(member_tokens, 1.0)[self.member]

    def order(self, keep_zeros: bool) -> NDArray[np.int64]:
        """Indices of the samples to pack, by prompt, prompts with the longest sequence first."""
        signal = self.advantage != 0
        if keep_zeros:
            signal = (np.bincount(self.member, weights=signal) > 0)[self.member]
        kept = np.flatnonzero(signal & (self.completion > 0))
        longest = np.zeros(len(self.samples), dtype=np.int64)
        np.maximum.at(longest, self.bundle[kept], self.length[kept])
        keys = (-self.length[kept], self.bundle[kept], -longest[self.bundle[kept]])
        ordered: NDArray[np.int64] = kept[np.lexsort(keys)]
        return ordered

    def split(self, order: NDArray[np.int64], token_budget: int) -> Iterator[NDArray[np.int64]]:
        """Cut the order where the budget is used up."""
        start = used = 0
        for end, row in enumerate(order):
            shared = end > start and self.bundle[row] == self.bundle[order[end - 1]]
            cost = self.length[row] - (self.prompt[row] if shared else 0)
            if end > start and used + cost > token_budget:
                yield order[start:end]
                start, used, cost = end, 0, self.length[row]
            used += cost
        if len(order):
            yield order[start:]

    def pack(self, rows: NDArray[np.int64]) -> MicroBatch:
        rows = rows[np.argsort(self.member[rows], kind="stable")]
        chosen = [self.samples[row] for row in rows]
        layout = lay_out([self._bundle(own) for own in np.split(rows, self._borders(rows))])
        prompt, length, completion = self.prompt[rows], self.length[rows], self.completion[rows]
        column = np.arange(layout.rows.shape[1])
        predicts = (column >= prompt[:, None] - 1) & (column < length[:, None])

        def per_token(values: NDArray[np.generic]) -> Tensor:
            return torch.from_numpy(np.repeat(values[rows], completion))

        return MicroBatch(
            layout=layout,
            sources=layout.rows[torch.from_numpy(predicts)],
            targets=torch.from_numpy(np.concatenate([s.completion_ids for s in chosen])),
            advantages=per_token(self.advantage).float(),
            engine_logprobs=torch.from_numpy(np.concatenate([s.logprobs for s in chosen])).float(),
            weights=per_token(self.weight).float(),
            members=per_token(self.member),
            sequence_tokens=int(length.sum()),
        )

    def _borders(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.flatnonzero(np.diff(self.bundle[rows])) + 1

    def _bundle(self, rows: NDArray[np.int64]) -> Bundle:
        chosen = [self.samples[row] for row in rows]
        endings = tuple(sample.completion_ids[:-1] for sample in chosen)
        return Bundle(chosen[0].member.name, chosen[0].prompt_ids, endings)
