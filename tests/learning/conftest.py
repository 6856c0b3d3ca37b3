"""A bank with three trained-looking members and a batch of random samples for each."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from populora.config import AdapterConfig
from populora.learning.samples import Sample
from populora.population.bank import AdapterBank
from populora.records import Member, Role

MEMBERS = (
    Member("teacher-0", Role.TEACHER),
    Member("teacher-1", Role.TEACHER),
    Member("student-0", Role.STUDENT),
)


@pytest.fixture
def bank(tiny_base: Path) -> AdapterBank:
    """Three members, rank 4, whose B is not zero, so that every factor has a gradient."""
    base = AutoModelForCausalLM.from_pretrained(tiny_base, dtype=torch.float32)
    bank = AdapterBank(base, [member.name for member in MEMBERS], AdapterConfig(rank=4, alpha=8.0), seed=0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for member in MEMBERS:
            for parameter in bank.parameters_of(member.name):
                parameter.copy_(0.1 * torch.randn(parameter.shape, generator=generator))
    return bank


@pytest.fixture(scope="session")
def make_samples() -> Callable[..., list[Sample]]:
    """Factory: four groups of three samples for each member, of random length and content, members interleaved."""

    def make(
        rewards: tuple[float, ...] = (1.0, -0.5, -0.5), members: tuple[Member, ...] = MEMBERS
    ) -> list[Sample]:
        rng = random.Random(0)
        samples = []
        for group in range(4 * len(members)):
            member = members[group % len(members)]
            prompt = tuple(rng.randrange(3, 250) for _ in range(rng.randrange(2, 12)))
            for reward in rewards:
                completion = tuple(rng.randrange(3, 250) for _ in range(rng.randrange(1, 20)))
                samples.append(
                    Sample(
                        member=member,
                        role=Role.TEACHER if member.role is Role.TEACHER else Role.STUDENT,
                        task=("deduction", "abduction")[group % 2],
                        group=group,
                        prompt_ids=prompt,
                        completion_ids=completion,
                        logprobs=tuple(rng.uniform(-9, -2) for _ in completion),
                        reward=reward + rng.choice((0.0, 0.25)),
                    )
                )
        return samples

    return make
