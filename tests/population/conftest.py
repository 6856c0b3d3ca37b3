"""Fixtures of the population's tests."""

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from populora.config import AdapterConfig
from populora.population.bank import AdapterBank
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
