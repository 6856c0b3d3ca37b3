"""The trainer's loss, optimizer and batches."""

import itertools
from typing import Any

import pytest
import torch
from torch.nn import functional
from transformers import AutoModelForCausalLM, AutoTokenizer

from populora.embedded import model_path
from populora.embedded.data import Batch, Course, batches, curriculum
from populora.embedded.forward import response_loss
from populora.embedded.muon import Muon, orthogonalise
from populora.embedded.programs import STEP_WEIGHTS
from populora.embedded.train import rate_factor


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(model_path())


@pytest.fixture(scope="module")
def batch(tokenizer: Any) -> Batch:
    return next(batches(tokenizer.backend_tokenizer, Course(1000, seed=0), 1200))


def test_loss_and_gradients_equal_those_of_the_models_own_forward_pass(batch: Batch) -> None:
    model = AutoModelForCausalLM.from_pretrained(model_path(), dtype=torch.float32)
    weights = list(model.parameters())
    wanted = batch.learn[:, 1:]
    targets = batch.ids[:, 1:][wanted]
    lean = response_loss(model)(batch.ids[:, :-1], wanted.flatten().nonzero()[:, 0], targets)
    logits = model(input_ids=batch.ids[:, :-1]).logits[wanted]
    plain = functional.cross_entropy(logits, targets, reduction="sum")
    torch.testing.assert_close(lean, plain)
    for ours, theirs in zip(
        torch.autograd.grad(lean, weights), torch.autograd.grad(plain, weights), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)


def test_batches_depend_on_the_seed_alone(tokenizer: Any) -> None:
    first, again, other = (
        list(itertools.islice(batches(tokenizer.backend_tokenizer, Course(3000, seed), 1200), 3))
        for seed in (1, 1, 2)
    )
    assert all(torch.equal(a.ids, b.ids) for a, b in zip(first, again, strict=True))
    assert not all(torch.equal(a.ids, b.ids) for a, b in zip(first, other, strict=True))


def test_only_responses_are_learnt(tokenizer: Any, batch: Batch) -> None:
    for ids, learn in zip(batch.ids, batch.learn, strict=True):
        text = tokenizer.decode(ids[learn])
        assert text.startswith("<think>")
        assert text.endswith("<|im_end|>\n")
        assert "assistant" not in text


def test_splitting_a_batch_loses_nothing(batch: Batch) -> None:
    parts = batch.split(3)
    assert sum(int(part.learn.sum()) for part in parts) == int(batch.learn.sum())


def test_curriculum_ends_at_the_final_weights() -> None:
    assert curriculum(0.0)[0] > curriculum(0.1)[0] > curriculum(0.5)[0]
    assert curriculum(0.5) == pytest.approx(STEP_WEIGHTS)


def test_rates_rise_then_fall_to_zero() -> None:
    assert rate_factor(0.0, 0.1) == 0
    assert rate_factor(0.1, 0.1) == pytest.approx(1)
    assert rate_factor(0.55, 0.1) == pytest.approx(0.5)
    assert rate_factor(1.0, 0.1) == 0


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 24, 8), (2, 8, 24)])
def test_orthogonalised_matrices_have_singular_values_near_one(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    values = torch.linalg.svdvals(orthogonalise(torch.randn(shape)))
    assert float(values.min()) > 0.3
    assert float(values.max()) < 1.3


def test_muon_lowers_a_loss() -> None:
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(6, 4))
    optimizer = Muon([weight], lr=0.1)
    for _ in range(60):
        weight.grad = 2 * weight.detach()
        optimizer.step()
    assert float(weight.detach().norm()) < 1
