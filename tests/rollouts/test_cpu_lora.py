"""Products with many adapters in one batch, against one product a token."""

import random

import pytest
import torch
from torch import Tensor

from populora.rollouts.cpu_lora import add_lora, group

RANK, WIDTH, OUTS = 3, 4, (5, 2)


def _stacks(slots: int) -> tuple[list[Tensor], list[Tensor]]:
    generator = torch.Generator().manual_seed(slots)
    a = [torch.randn(slots, 1, RANK, WIDTH, generator=generator, dtype=torch.float64) for _ in OUTS]
    b = [torch.randn(slots, 1, out, RANK, generator=generator, dtype=torch.float64) for out in OUTS]
    return a, b


def _one_by_one(y: Tensor, x: Tensor, a: list[Tensor], b: list[Tensor], slots: list[int]) -> Tensor:
    rows = []
    for token, slot in enumerate(slots):
        row = y[token]
        if slot >= 0:
            row = row + torch.cat([b[s][slot, 0] @ (a[s][slot, 0] @ x[token]) for s in range(len(OUTS))])
        rows.append(row)
    return torch.stack(rows)


def _crowds() -> list[list[int]]:
    """Batches of all kinds: only the base, one adapter, equal and very unequal groups, with and without the base."""
    rng = random.Random(0)
    drawn = [
        rng.choices(range(-1, 6), weights=[rng.random() ** 4 for _ in range(7)], k=rng.randrange(1, 150))
        for _ in range(60)
    ]
    return [[-1], [3], [-1, -1], [5] * 40, [-1] * 30 + [0], [0, 1, 2, 3, 4, 5] * 9, [1] * 90 + [2, 4], *drawn]


@pytest.mark.parametrize("slots", _crowds())
def test_each_token_gets_its_own_adapter_and_the_base_none(slots: list[int]) -> None:
    a, b = _stacks(6)
    x = torch.randn(len(slots), WIDTH, dtype=torch.float64)
    y = torch.randn(len(slots), sum(OUTS), dtype=torch.float64)
    expected = _one_by_one(y, x, a, b, slots)
    bare = torch.tensor(slots) < 0
    untouched = y[bare].clone()
    grouping = group(torch.tensor(slots))
    if grouping is None:
        assert bare.all()
    else:
        add_lora(y, x, a, b, grouping)
    torch.testing.assert_close(y, expected)
    assert torch.equal(y[bare], untouched)


@pytest.mark.parametrize("slots", [crowd for crowd in _crowds() if max(crowd) >= 0])
def test_padding_is_bounded_however_unequal_the_groups(slots: list[int]) -> None:
    grouping = group(torch.tensor(slots))
    assert grouping is not None
    adapted = [slot for slot in slots if slot >= 0]
    assert len(grouping.rows) <= max(1.5 * len(adapted), len(adapted) + 16 * len(set(adapted)))


def test_output_may_be_a_part_of_a_larger_tensor() -> None:
    a, b = _stacks(2)
    whole = torch.zeros(3, 10, dtype=torch.float64)
    x = torch.randn(3, WIDTH, dtype=torch.float64)
    grouping = group(torch.tensor([1, 0, 1]))
    assert grouping is not None
    add_lora(whole[:, 1:8], x, a, b, grouping)
    torch.testing.assert_close(
        whole[:, 1:8], _one_by_one(torch.zeros(3, 7, dtype=torch.float64), x, a, b, [1, 0, 1])
    )
    assert not whole[:, 0].any()
    assert not whole[:, 8:].any()
