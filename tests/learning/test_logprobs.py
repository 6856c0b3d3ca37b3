"""Chunked log-probabilities against one tensor of float32 logits."""

import pytest
import torch
from torch import Tensor

from populora.learning.logprobs import completion_logprobs

TOKENS, WIDTH, VOCABULARY = 37, 24, 301


def _inputs(dtype: torch.dtype, bias: bool) -> tuple[Tensor, Tensor, Tensor | None, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(TOKENS, WIDTH, generator=generator).to(dtype).requires_grad_()
    weight = torch.randn(VOCABULARY, WIDTH, generator=generator).to(dtype)
    offset = torch.randn(VOCABULARY, generator=generator).to(dtype) if bias else None
    targets = torch.randint(VOCABULARY, (TOKENS,), generator=generator)
    upstream = torch.randn(TOKENS, generator=generator)
    return hidden, weight, offset, targets, upstream


def _full(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    logits = torch.nn.functional.linear(
        hidden.float(), weight.float(), None if bias is None else bias.float()
    )
    distribution = torch.distributions.Categorical(logits=logits / temperature)
    return distribution.log_prob(targets), distribution.entropy()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("temperature", [1.0, 0.6, 1.7])
@pytest.mark.parametrize("chunk_tokens", [1, 16, 37, 1000])
@pytest.mark.parametrize("bias", [False, True])
def test_equal_to_full_logits(dtype: torch.dtype, temperature: float, chunk_tokens: int, bias: bool) -> None:
    hidden, weight, offset, targets, upstream = _inputs(dtype, bias)
    expected, expected_entropy = _full(hidden, weight, offset, targets, temperature)
    (expected_gradient,) = torch.autograd.grad((expected * upstream).sum(), hidden)
    logprobs, entropy = completion_logprobs(hidden, weight, offset, targets, temperature, chunk_tokens)
    (gradient,) = torch.autograd.grad((logprobs * upstream).sum(), hidden)
    assert logprobs.dtype == entropy.dtype == torch.float32
    assert gradient.dtype == dtype
    torch.testing.assert_close(logprobs, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(entropy, expected_entropy, rtol=1e-5, atol=1e-5)
    rtol = (
        1e-5 if dtype == torch.float32 else torch.finfo(dtype).eps
    )  # the gradient itself is rounded to the type
    torch.testing.assert_close(gradient, expected_gradient, rtol=rtol, atol=1e-5)


def test_extreme_logits_stay_finite() -> None:
    hidden = torch.tensor([[1e4], [-1e4]], requires_grad=True)
    weight = torch.tensor([[1.0], [-1.0], [0.0]])
    logprobs, entropy = completion_logprobs(hidden, weight, None, torch.tensor([0, 0]), 1.0)
    assert logprobs.tolist() == [0.0, -2e4]
    assert entropy.tolist() == [0.0, 0.0]
    (gradient,) = torch.autograd.grad(logprobs.sum(), hidden)
    assert gradient.tolist() == [[0.0], [2.0]]


def test_a_token_that_is_not_finite_leaves_the_others_alone() -> None:
    hidden, weight, _, targets, _ = _inputs(torch.float32, bias=False)
    clean, _ = completion_logprobs(hidden, weight, None, targets, 1.0)
    spoilt = hidden.detach().clone()
    spoilt[5] = torch.nan
    spoilt.requires_grad_()
    logprobs, _ = completion_logprobs(spoilt, weight, None, targets, 1.0)
    (gradient,) = torch.autograd.grad(logprobs.sum(), spoilt)
    others = torch.arange(TOKENS) != 5
    torch.testing.assert_close(logprobs[others], clean[others])
    assert gradient[others].isfinite().all()
    assert logprobs[5].isnan()


def test_entropy_has_no_gradient_and_the_head_gets_none() -> None:
    hidden, weight, _, targets, _ = _inputs(torch.float32, bias=False)
    weight.requires_grad_()
    logprobs, entropy = completion_logprobs(hidden, weight, None, targets, 1.0)
    assert not entropy.requires_grad
    logprobs.sum().backward()
    assert weight.grad is None


def test_without_gradient_nothing_is_kept() -> None:
    hidden, weight, _, targets, _ = _inputs(torch.float32, bias=False)
    with torch.no_grad():
        logprobs, _ = completion_logprobs(hidden, weight, None, targets, 1.0)
    torch.testing.assert_close(logprobs, _full(hidden, weight, None, targets, 1.0)[0].detach())
    assert not logprobs.requires_grad


@pytest.mark.parametrize("temperature", [0.0, -1.0])
def test_temperature_must_be_positive(temperature: float) -> None:
    hidden, weight, _, targets, _ = _inputs(torch.float32, bias=False)
    with pytest.raises(ValueError, match="temperature must be positive"):
        completion_logprobs(hidden, weight, None, targets, temperature)
