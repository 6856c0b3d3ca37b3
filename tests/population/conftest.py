"""Fixtures of the population's tests."""

import copy
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

from populora.config import AdapterConfig
from populora.population.bank import AdapterBank
from populora.population.layout import Bundle, lay_out
from populora.population.lowrank import LowRank

NAMES = ("teacher-0", "teacher-1", "student-0")


@pytest.fixture(scope="session")
def _bases(tiny_base: Path) -> dict[torch.dtype, PreTrainedModel]:
    return {
        dtype: AutoModelForCausalLM.from_pretrained(tiny_base, dtype=dtype).eval()
        for dtype in (torch.float32, torch.bfloat16)
    }


@pytest.fixture
def load_base(_bases: dict[torch.dtype, PreTrainedModel]) -> Callable[..., PreTrainedModel]:
    """Gives a new copy of the tiny base in evaluation mode."""

    def load(dtype: torch.dtype = torch.float32) -> PreTrainedModel:
        return copy.deepcopy(_bases[dtype])

    return load


@pytest.fixture
def make_bank(load_base: Callable[..., PreTrainedModel]) -> Callable[..., AdapterBank]:
    """Builds a bank of three members whose updates are not zero."""

    def make(dtype: torch.dtype = torch.float32) -> AdapterBank:
        bank = AdapterBank(load_base(dtype), NAMES, AdapterConfig(rank=4, alpha=8.0), seed=1)
        generator = torch.Generator().manual_seed(0)
        for name in NAMES:
            for parameter in bank.parameters_of(name):
                parameter.data.copy_(0.1 * torch.randn(parameter.shape, generator=generator))
        return bank

    return make


@pytest.fixture
def forward() -> Callable[..., Tensor]:
    """Runs padded rows through a bank, each with its adapter, and returns padded hidden states; (B, L, H).

    The first ``shared`` tokens of all rows, which must be equal, are computed once for each adapter.
    """

    def run(
        bank: AdapterBank, ids: Tensor, mask: Tensor, adapters: Sequence[str | None], shared: int = 0
    ) -> Tensor:
        sequences = [tuple(row[: int(n)].tolist()) for row, n in zip(ids, mask.sum(1), strict=True)]
        if shared:
            order = sorted(range(len(ids)), key=lambda row: adapters.index(adapters[row]))
            rows = {name: [sequences[r] for r in order if adapters[r] == name] for name in adapters}
            bundles = [
                Bundle(name, own[0][:shared], tuple(row[shared:] for row in own))
                for name, own in rows.items()
            ]
        else:
            order = list(range(len(ids)))
            bundles = [Bundle(name, row, ((),)) for name, row in zip(adapters, sequences, strict=True)]
        layout = lay_out(bundles)
        hidden = bank.hidden_states(layout)[layout.rows]
        result = hidden.new_zeros(*ids.shape, hidden.shape[-1])
        result[order, : hidden.shape[1]] = hidden
        return result

    return run


@pytest.fixture
def make_adapter() -> Callable[..., dict[str, LowRank]]:
    """Builds an adapter of random, or freshly initialised, factors with distinct singular values."""

    def make(
        seed: int,
        rank: int = 8,
        shapes: tuple[tuple[int, int], ...] = ((24, 16), (12, 20)),
        fresh: bool = False,
    ) -> dict[str, LowRank]:
        generator = torch.Generator().manual_seed(seed)
        scales = 2.0 ** -torch.arange(rank)
        return {
            f"layers.{i}.proj": LowRank(
                torch.randn(rank, width, generator=generator),
                torch.zeros(out, rank) if fresh else torch.randn(out, rank, generator=generator) * scales,
            )
            for i, (out, width) in enumerate(shapes)
        }

    return make
