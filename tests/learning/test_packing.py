"""Micro-batches hold exactly the samples' tokens, within the budget."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
import torch

from populora.learning.packing import MicroBatch, micro_batches
from populora.learning.samples import Sample, roster

Rows = list[tuple[str, tuple[int, ...], tuple[tuple[int, float, float, float, int], ...]]]
"""(adapter, input tokens, (target, advantage, engine log-probability, weight, member) at each token) of each row."""


@pytest.fixture
def samples(make_samples: Callable[..., list[Sample]]) -> list[Sample]:
    return make_samples()


def _unpack(batch: MicroBatch) -> Rows:
    """Read a micro-batch token by token, through ``positions`` alone."""
    width = batch.input_ids.shape[1]
    rows: Rows = []
    for row, adapter in enumerate(batch.adapters):
        inputs = tuple(batch.input_ids[row][batch.attention_mask[row].bool()].tolist())
        tokens = [t for t, position in enumerate(batch.positions.tolist()) if position // width == row]
        assert [batch.positions[t].item() % width for t in tokens] == list(
            range(len(inputs) - len(tokens), len(inputs))
        )
        columns = (batch.targets, batch.advantages, batch.engine_logprobs, batch.weights, batch.members)
        rows.append(
            (adapter, inputs, tuple(zip(*(column[tokens].tolist() for column in columns), strict=True)))
        )
    return rows


def _expected(samples: Sequence[Sample], advantages: Sequence[float]) -> Rows:
    members = roster(samples)
    tokens = {m: sum(len(s.completion_ids) for s in samples if s.member == m) for m in members}
    return [
        (
            s.member.name,
            s.prompt_ids + s.completion_ids[:-1],
            tuple(
                (
                    target,
                    pytest.approx(advantage),
                    pytest.approx(logprob),
                    pytest.approx(1 / tokens[s.member]),
                    number,
                )
                for target, logprob in zip(s.completion_ids, s.logprobs, strict=True)
            ),
        )
        for s, advantage in zip(samples, advantages, strict=True)
        for number in [members.index(s.member)]
    ]


def _matches(rows: Rows, expected: Rows) -> bool:
    return sorted(row[:2] for row in rows) == sorted(row[:2] for row in expected) and all(
        row == next(e for e in expected if e[:2] == row[:2]) for row in rows
    )


@pytest.mark.parametrize("budget", [1, 64, 200, 10_000])
def test_every_token_is_packed_once_with_its_own_values(samples: list[Sample], budget: int) -> None:
    advantages = torch.linspace(0.1, 2.0, len(samples), dtype=torch.float64)
    rows = [row for batch in micro_batches(samples, advantages, budget) for row in _unpack(batch)]
    assert _matches(rows, _expected(samples, advantages.tolist()))


@pytest.mark.parametrize("budget", [1, 64, 200, 10_000])
def test_budget_counts_padding_and_a_long_sample_is_alone(samples: list[Sample], budget: int) -> None:
    for batch in micro_batches(samples, torch.ones(len(samples)), budget):
        assert batch.input_ids.numel() <= budget or len(batch.adapters) == 1


def test_padding_is_small_because_lengths_are_sorted(samples: list[Sample]) -> None:
    batches = micro_batches(samples, torch.ones(len(samples)), 100)
    lengths = [batch.attention_mask.sum(1) for batch in batches]
    assert all(upper.min() >= lower.max() for upper, lower in pairwise(lengths))


def test_members_are_adjacent_in_a_micro_batch(samples: list[Sample]) -> None:
    (batch,) = micro_batches(samples, torch.ones(len(samples)), 10_000)
    changes = sum(a != b for a, b in pairwise(batch.adapters))
    assert changes == len(roster(samples)) - 1


def test_zero_advantage_is_not_passed_but_counts_in_the_weights(samples: list[Sample]) -> None:
    advantages = torch.ones(len(samples))
    advantages[::2] = 0
    rows = [row for batch in micro_batches(samples, advantages, 200) for row in _unpack(batch)]
    kept = _expected(samples, advantages.tolist())[1::2]
    assert _matches(rows, kept)


def test_keeping_zeros_still_leaves_out_a_member_without_any_signal(samples: list[Sample]) -> None:
    silent = samples[0].member
    advantages = torch.tensor([0.0 if s.member == silent or i % 2 else 1.0 for i, s in enumerate(samples)])
    rows = [
        row for batch in micro_batches(samples, advantages, 200, keep_zeros=True) for row in _unpack(batch)
    ]
    kept = [e for e in _expected(samples, advantages.tolist()) if e[0] != silent.name]
    assert _matches(rows, kept)


def test_an_empty_completion_is_not_passed(samples: list[Sample]) -> None:
    first = samples[0]
    empty = Sample(first.member, first.role, first.task, first.group, (1, 2, 3), (), (), 1.0)
    (batch,) = micro_batches([empty, first], torch.ones(2), 10_000)
    assert _matches(_unpack(batch), _expected([first], [1.0]))


def test_no_samples_no_micro_batches() -> None:
    assert micro_batches([], torch.zeros(0), 64) == []
