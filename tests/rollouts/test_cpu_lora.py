"""Products with many adapters in one batch, against one product a token."""

import random

import pytest
import torch
from torch import Tensor

from populora.rollouts.cpu_lora import Tiles, add_lora, arrange, group

RANK, WIDTH, OUTS, SLOTS = 3, 4, (5, 2), 6


def _stacks() -> tuple[list[Tensor], list[Tensor]]:
    generator = torch.Generator().manual_seed(0)
    a = [torch.randn(SLOTS, 1, RANK, WIDTH, generator=generator, dtype=torch.float64) for _ in OUTS]
    b = [torch.randn(SLOTS, 1, out, RANK, generator=generator, dtype=torch.float64) for out in OUTS]
    return a, b


def _one_by_one(y: Tensor, x: Tensor, slots: list[int]) -> Tensor:
    a, b = _stacks()
    rows = []
    for token, slot in enumerate(slots):
        row = y[token]
        if slot >= 0:
            row = row + torch.cat([b[s][slot, 0] @ (a[s][slot, 0] @ x[token]) for s in range(len(OUTS))])
        rows.append(row)
    return torch.stack(rows)


def _crowds() -> list[list[int]]:
    """Batches of all kinds: only the base, one adapter, equal and very unequal groups, long runs, with the base."""
    rng = random.Random(0)
    drawn = [
        rng.choices(range(-1, SLOTS), weights=[rng.random() ** 4 for _ in range(7)], k=rng.randrange(1, 150))
        for _ in range(60)
    ]
    prompts = [[4] * 70 + [-1] * 90 + [0] * 64, [2] * 65 + [3] * 80, [-1] * 100]
    small = [[-1], [3], [-1, -1], [5] * 40, [-1] * 30 + [0], [0, 1, 2, 3, 4, 5] * 9, [1] * 50 + [2, 4, 1]]
    return [*prompts, *small, *drawn]


@pytest.mark.parametrize("slots", _crowds())
def test_each_token_gets_its_own_adapter_and_the_base_none(slots: list[int]) -> None:
    x = torch.randn(len(slots), WIDTH, dtype=torch.float64)
    y = torch.randn(len(slots), sum(OUTS), dtype=torch.float64)
    expected = _one_by_one(y, x, slots)
    bare = torch.tensor(slots) < 0
    untouched = y[bare].clone()
    add_lora(y, x, arrange(*_stacks()), group(torch.tensor(slots)))
    torch.testing.assert_close(y, expected)
    assert torch.equal(y[bare], untouched)


def test_only_mixed_up_tokens_are_moved() -> None:
    assert isinstance(group(torch.tensor([0, 1] * 64)), Tiles)
    assert not isinstance(group(torch.tensor([0] * 64 + [1] * 64)), Tiles)


@pytest.mark.parametrize("slots", _crowds())
def test_padding_is_bounded_however_unequal_the_groups(slots: list[int]) -> None:
    grouping = group(torch.tensor(slots))
    adapted = [slot for slot in slots if slot >= 0]
    if isinstance(grouping, Tiles):
        assert len(grouping.rows) <= max(1.5 * len(adapted), len(adapted) + 16 * len(set(adapted)))
    else:
        assert sum(run.stop - run.start for run in grouping) == len(adapted)


def test_output_may_be_a_part_of_a_larger_tensor() -> None:
    whole, x = torch.zeros(3, 10, dtype=torch.float64), torch.randn(3, WIDTH, dtype=torch.float64)
    add_lora(whole[:, 1:8], x, arrange(*_stacks()), group(torch.tensor([1, 0, 1])))
    nothing = torch.zeros(3, 7, dtype=torch.float64)
    torch.testing.assert_close(whole[:, 1:8], _one_by_one(nothing, x, [1, 0, 1]))
    assert not whole[:, 0].any()
    assert not whole[:, 8:].any()


def test_arranged_factors_follow_what_is_loaded_later() -> None:
    a, b = _stacks()
    with torch.inference_mode():
        factors = arrange(a, b)
    for arranged, original in zip((*a, *b), (*_stacks()[0], *_stacks()[1]), strict=True):
        assert torch.equal(arranged, original)
    a[1][2, 0, :2].copy_(torch.full((2, WIDTH), 7.0))
    b[0][2] = 0
    assert torch.equal(factors.a[2, :, RANK : RANK + 2], torch.full((WIDTH, 2), 7.0, dtype=torch.float64))
    assert not factors.b[0][2].any()
    assert factors.b[0][1].any()
