"""Micro-batches hold exactly the samples' tokens, within the budget."""

from collections.abc import Callable, Sequence
from dataclasses import replace

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
    """Read a micro-batch token by token: sequences from ``rows``, their learnt tokens from ``sources``."""
    layout, sources = batch.layout, batch.sources.tolist()
    columns = (batch.targets, batch.advantages, batch.engine_logprobs, batch.weights, batch.members)
    learnt = list(zip(*(column.tolist() for column in columns), strict=True))
    adapter_of = {t: s.adapter for s in layout.segments for t in range(s.start, s.stop)}
    rows: Rows = []
    start = 0
    for row in layout.rows.tolist():
        tokens = list(dict.fromkeys(row))
        stop = sources.index(tokens[-1], start) + 1
        assert sources[start:stop] == tokens[start - stop :]
        assert layout.positions[tokens].tolist() == list(range(len(tokens)))
        (adapter,) = {adapter_of[token] for token in tokens}
        rows.append((adapter, tuple(layout.input_ids[tokens].tolist()), tuple(learnt[start:stop])))
        start = stop
    assert start == len(learnt)
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
def test_the_budget_holds_and_a_long_sample_is_alone(samples: list[Sample], budget: int) -> None:
    for batch in micro_batches(samples, torch.ones(len(samples)), budget):
        assert len(batch.layout.input_ids) <= budget or len(batch.layout.rows) == 1


def test_no_token_is_wasted_and_a_prompt_is_passed_once(samples: list[Sample]) -> None:
    batches = micro_batches(samples, torch.ones(len(samples)), 10_000)
    prompts = {s.group: len(s.prompt_ids) for s in samples}
    completions = sum(len(s.completion_ids) - 1 for s in samples)
    assert sum(len(b.layout.input_ids) for b in batches) == sum(prompts.values()) + completions


def test_equal_prompts_of_different_members_are_not_shared(samples: list[Sample]) -> None:
    one = samples[0]
    other = replace(one, member=next(s.member for s in samples if s.member != one.member))
    (batch,) = micro_batches([one, other, one], torch.ones(3), 10_000)
    completion = len(one.completion_ids) - 1
    assert len(batch.layout.input_ids) == 2 * len(one.prompt_ids) + 3 * completion


def test_sequences_of_a_micro_batch_are_of_like_length(samples: list[Sample]) -> None:
    """Prompts are sorted by their longest sequence, so the longest of a micro-batch bounds the next one's."""
    batches = micro_batches(samples, torch.ones(len(samples)), 100)
    widths = [batch.layout.rows.shape[1] for batch in batches]
    assert len(widths) > 3
    assert widths == sorted(widths, reverse=True)


def test_members_are_adjacent_in_a_micro_batch(samples: list[Sample]) -> None:
    (batch,) = micro_batches(samples, torch.ones(len(samples)), 10_000)
    assert [s.adapter for s in batch.layout.segments] == [m.name for m in roster(samples)]


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
