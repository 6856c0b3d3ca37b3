"""The mixed step against plain loops: one sample at a time, full logits, each adapter alone in PEFT."""

import copy
import logging
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from peft import PeftModel
from torch import Tensor
from transformers import AutoModelForCausalLM

from populora.config import LearningConfig
from populora.learning.samples import Sample
from populora.learning.step import gradient_step
from populora.population.bank import AdapterBank
from populora.population.optimizer import build_optimizer
from populora.records import MemberUpdate, Update

CONFIG = LearningConfig(
    tokens_per_micro_batch=150, max_gradient_norm=1e9, weight_decay=0.1, learning_rate=1e-2
)
Gradients = dict[str, dict[str, Tensor]]


@pytest.fixture
def samples(make_samples: Callable[..., list[Sample]]) -> list[Sample]:
    return make_samples()


def _gradients(
    bank: AdapterBank, samples: list[Sample], config: LearningConfig = CONFIG
) -> tuple[Update, Gradients]:
    """Run a step whose optimizer stays still and return the gradients it leaves."""
    update = gradient_step(bank, build_optimizer(bank, config), samples, config, 0.7, step=lambda: None)
    return update, {
        name: {path: p.grad.clone() for path, p in bank.named_factors(name) if p.grad is not None}
        for name in bank.names
    }


def _advantages(samples: list[Sample]) -> list[float]:
    """REINFORCE++-baseline of one member's samples."""
    centred = [s.reward - np.mean([o.reward for o in samples if o.group == s.group]) for s in samples]
    return [
        float(c / np.std([o for o, t in zip(centred, samples, strict=True) if t.task == s.task], ddof=1))
        for c, s in zip(centred, samples, strict=True)
    ]


def _token_logprobs(model: torch.nn.Module, sample: Sample, temperature: float) -> tuple[Tensor, Tensor]:
    ids = torch.tensor([sample.prompt_ids + sample.completion_ids])
    table = torch.log_softmax(
        model(input_ids=ids).logits[0, len(sample.prompt_ids) - 1 : -1] / temperature, -1
    )
    return table.gather(1, ids[0, len(sample.prompt_ids) :, None])[:, 0], -(table.exp() * table).sum(-1)


def _reference(
    base_folder: Path, adapter_folder: Path, samples: list[Sample], config: LearningConfig
) -> tuple[dict[str, float], dict[str, Tensor]]:
    """Loss, metrics and gradients of one member, a sample and a token at a time."""
    base = AutoModelForCausalLM.from_pretrained(base_folder, dtype=torch.float32).eval()
    model = PeftModel.from_pretrained(copy.deepcopy(base), adapter_folder, is_trainable=True).eval()
    tokens = sum(len(s.completion_ids) for s in samples)
    totals = dict.fromkeys(("loss", "entropy", "mismatch", "kl"), 0.0)
    for sample, advantage in zip(samples, _advantages(samples), strict=True):
        logprobs, entropy = _token_logprobs(model, sample, 0.7)
        with torch.no_grad():
            base_logprobs, _ = _token_logprobs(base, sample, 0.7)
        engine = torch.tensor(sample.logprobs)
        importance = torch.minimum(torch.exp(logprobs.detach() - engine), torch.tensor(config.importance_cap))
        gap = base_logprobs - logprobs
        kl = torch.exp(gap) - gap - 1
        policy = -importance * advantage * torch.exp(logprobs - logprobs.detach())
        loss = ((policy + config.kl_weight * kl) / tokens).sum()
        loss.backward()
        totals["loss"] += loss.item()
        totals["entropy"] += entropy.sum().item() / tokens
        totals["mismatch"] += (logprobs - engine).abs().sum().item() / tokens
        totals["kl"] += kl.sum().item() / tokens if config.kl_weight else 0.0
    gradients = {}
    for key, parameter in model.named_parameters():
        if parameter.grad is not None:
            path, factor = key.removeprefix("base_model.model.").split(".lora_")
            gradients[f"{path}.{factor[0].lower()}"] = parameter.grad
    return totals, gradients


@pytest.mark.parametrize("kl_weight", [0.0, 0.3])
def test_equals_a_loop_over_samples_with_each_adapter_alone(
    bank: AdapterBank, samples: list[Sample], tiny_base: Path, tmp_path: Path, kl_weight: float
) -> None:
    config = replace(CONFIG, kl_weight=kl_weight)
    update, gradients = _gradients(bank, samples, config)
    assert [m.member.name for m in update.members] == list(bank.names)
    for member in update.members:
        own = [s for s in samples if s.member == member.member]
        bank.export(member.member.name, tmp_path / member.member.name, torch.float32)
        totals, expected = _reference(tiny_base, tmp_path / member.member.name, own, config)
        assert gradients[member.member.name].keys() == expected.keys()
        for path, gradient in gradients[member.member.name].items():
            torch.testing.assert_close(gradient, expected[path], rtol=1e-5, atol=1e-5)
            assert expected[path].abs().max() > 1e-3
        for metric, value in totals.items():
            assert getattr(member, metric) == pytest.approx(value, rel=1e-4, abs=1e-5), metric
        norm = math.sqrt(sum(g.square().sum().item() for g in expected.values()))
        assert member.gradient_norm == pytest.approx(norm, rel=1e-5)
        assert member.tokens == sum(len(s.completion_ids) for s in own)
        assert member.samples == len(own)
        assert member.stepped


def test_a_mixed_batch_gives_each_member_the_gradient_it_gets_alone(
    bank: AdapterBank, samples: list[Sample]
) -> None:
    _, mixed = _gradients(bank, samples)
    for name in bank.names:
        _, alone = _gradients(bank, [s for s in samples if s.member.name == name])
        assert [n for n, gradients in alone.items() if gradients] == [name]
        for path, gradient in alone[name].items():
            torch.testing.assert_close(mixed[name][path], gradient, rtol=1e-5, atol=1e-6)


def test_the_token_budget_does_not_matter(bank: AdapterBank, samples: list[Sample]) -> None:
    small, many = _gradients(bank, samples, replace(CONFIG, tokens_per_micro_batch=64))
    large, one = _gradients(bank, samples, replace(CONFIG, tokens_per_micro_batch=10_000))
    assert small.tokens == large.tokens
    for name in bank.names:
        ours, theirs = (torch.cat([g.flatten() for g in run[name].values()]) for run in (many, one))
        assert (ours - theirs).norm() < 1e-6 * theirs.norm()


def test_twice_the_same_is_bitwise_the_same(bank: AdapterBank, samples: list[Sample]) -> None:
    _, first = _gradients(bank, samples)
    _, second = _gradients(bank, samples)
    for name in bank.names:
        assert all(torch.equal(first[name][path], gradient) for path, gradient in second[name].items())


def test_the_advantage_estimator_comes_from_the_config(bank: AdapterBank, samples: list[Sample]) -> None:
    """Without whitening the gradient of one task's samples is the whitened one times their deviation."""
    samples = [replace(s, task="deduction") for s in samples]
    _, whitened = _gradients(bank, samples)
    _, centred = _gradients(bank, samples, replace(CONFIG, advantage="dr_grpo"))
    for name in bank.names:
        own = [s for s in samples if s.member.name == name]
        std = np.std([s.reward - np.mean([o.reward for o in own if o.group == s.group]) for s in own], ddof=1)
        for path, gradient in whitened[name].items():
            torch.testing.assert_close(gradient * float(std), centred[name][path], rtol=1e-4, atol=1e-6)


def _state(bank: AdapterBank, optimizer: torch.optim.Optimizer, name: str) -> list[Tensor]:
    parameters = bank.parameters_of(name)
    moments = [
        optimizer.state[p][key].clone() for p in parameters for key in ("exp_avg", "exp_avg_sq", "step")
    ]
    return [p.detach().clone() for p in parameters] + moments


def _flatten(samples: list[Sample], *names: str) -> list[Sample]:
    """Give all responses of a group the same reward, another one for each group."""
    return [replace(s, reward=0.1 * s.group) if s.member.name in names else s for s in samples]


@pytest.mark.parametrize("kl_weight", [0.0, 0.3])
def test_a_flat_member_stays_bit_for_bit_and_the_others_move(
    bank: AdapterBank, samples: list[Sample], kl_weight: float
) -> None:
    config = replace(CONFIG, kl_weight=kl_weight)
    optimizer = build_optimizer(bank, config)
    gradient_step(bank, optimizer, samples, config, 1.0)
    before = {name: _state(bank, optimizer, name) for name in bank.names}
    update = gradient_step(bank, optimizer, _flatten(samples, "teacher-1"), config, 1.0)
    for member in update.members:
        name, is_flat = member.member.name, member.member.name == "teacher-1"
        assert member.stepped is not is_flat
        same = [torch.equal(a, b) for a, b in zip(before[name], _state(bank, optimizer, name), strict=True)]
        assert all(same) if is_flat else not any(same)


def test_a_flat_batch_changes_nothing_but_the_optimizer_is_stepped_once(
    bank: AdapterBank, samples: list[Sample]
) -> None:
    optimizer = build_optimizer(bank, CONFIG)
    gradient_step(bank, optimizer, samples, CONFIG, 1.0)
    before = {name: _state(bank, optimizer, name) for name in bank.names}
    steps: list[None] = []

    def step() -> None:
        optimizer.step()
        steps.append(None)

    update = gradient_step(bank, optimizer, _flatten(samples, *bank.names), CONFIG, 1.0, step=step)
    assert len(steps) == 1
    assert update.tokens == update.passed_tokens == 0
    for member in update.members:
        after = _state(bank, optimizer, member.member.name)
        assert all(torch.equal(a, b) for a, b in zip(before[member.member.name], after, strict=True))
        assert (member.stepped, member.flat_share, member.loss, member.gradient_norm) == (
            False,
            1.0,
            0.0,
            0.0,
        )
        assert math.isnan(member.entropy)
        assert member.tokens > 0


def test_flat_groups_are_counted_and_only_the_others_pass_through_the_model(
    bank: AdapterBank, samples: list[Sample]
) -> None:
    samples = [
        replace(s, reward=0.3) if s.group in (0, 3, 6) else s for s in samples
    ]  # three of teacher-0's four
    update, _ = _gradients(bank, samples, replace(CONFIG, advantage="dr_grpo"))
    assert [m.flat_share for m in update.members] == [0.75, 0.0, 0.0]
    passed = [s for s in samples if s.group not in (0, 3, 6)]
    mean = {g: np.mean([s.reward for s in samples if s.group == g]) for g in {s.group for s in samples}}
    passed = [s for s in passed if s.reward != mean[s.group]]
    assert update.tokens == sum(len(s.prompt_ids) + len(s.completion_ids) - 1 for s in passed)
    prompts = {s.group: len(s.prompt_ids) for s in passed}
    shared = sum(prompts.values()) + sum(len(s.completion_ids) - 1 for s in passed)
    assert update.passed_tokens == shared < update.tokens


def _spoil_engine_logprob(bank: AdapterBank, samples: list[Sample]) -> list[Sample]:
    first = next(i for i, s in enumerate(samples) if s.member.name == "teacher-1")
    spoilt = replace(samples[first], logprobs=(math.nan, *samples[first].logprobs[1:]))
    return [*samples[:first], spoilt, *samples[first + 1 :]]


def _spoil_weights(bank: AdapterBank, samples: list[Sample]) -> list[Sample]:
    with torch.no_grad():
        bank.parameters_of("teacher-1")[0][0, 0] = math.inf
    return samples


@pytest.mark.parametrize("spoil", [_spoil_engine_logprob, _spoil_weights])
def test_a_member_that_is_not_finite_is_skipped_and_the_others_get_their_gradient(
    bank: AdapterBank,
    samples: list[Sample],
    spoil: Callable[[AdapterBank, list[Sample]], list[Sample]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    clean, expected = _gradients(bank, samples)
    with caplog.at_level(logging.WARNING):
        update, gradients = _gradients(bank, spoil(bank, samples))
    assert [m.stepped for m in update.members] == [True, False, True]
    assert gradients["teacher-1"] == {}
    assert "teacher-1 is not stepped" in caplog.text
    for name in ("teacher-0", "student-0"):
        for path, gradient in expected[name].items():
            torch.testing.assert_close(gradients[name][path], gradient)
    assert _finite(update.members[0]) == _finite(clean.members[0])
    assert _finite(update.members[2]) == _finite(clean.members[2])


def _finite(update: MemberUpdate) -> list[object]:
    values = (update.loss, update.gradient_norm, update.entropy, update.clip_share, update.mismatch)
    assert all(math.isfinite(value) for value in values)
    return [pytest.approx(value, rel=1e-5) for value in values]


def test_each_member_is_clipped_by_its_own_norm(bank: AdapterBank, samples: list[Sample]) -> None:
    free, unclipped = _gradients(bank, samples)
    norms = {m.member.name: m.gradient_norm for m in free.members}
    bound = sorted(norms.values())[1] * 0.99  # two members lie above, one below
    update, clipped = _gradients(bank, samples, replace(CONFIG, max_gradient_norm=bound))
    assert {m.member.name: m.gradient_norm for m in update.members} == pytest.approx(norms)
    for name in bank.names:
        scale = min(1.0, bound / norms[name])
        for path, gradient in unclipped[name].items():
            torch.testing.assert_close(clipped[name][path], gradient * scale, rtol=1e-4, atol=1e-7)


def test_the_base_stays_frozen_and_the_backward_given_is_used(
    bank: AdapterBank, samples: list[Sample]
) -> None:
    before = bank.head.clone()
    losses: list[float] = []

    def backward(loss: Tensor) -> None:
        losses.append(loss.item())
        loss.backward()

    optimizer = build_optimizer(bank, CONFIG)
    update = gradient_step(bank, optimizer, samples, CONFIG, 1.0, backward)
    assert sum(losses) == pytest.approx(sum(m.loss for m in update.members), rel=1e-5)
    assert len(losses) > 1
    assert torch.equal(before, bank.head)


def test_a_member_whose_mismatch_is_above_the_bound_is_warned_about(
    bank: AdapterBank, samples: list[Sample], caplog: pytest.LogCaptureFixture
) -> None:
    update, _ = _gradients(bank, samples)
    low, bound, high = sorted(update.members, key=lambda m: m.mismatch)
    with caplog.at_level(logging.WARNING):
        caplog.clear()
        _gradients(bank, samples, replace(CONFIG, mismatch_warning=bound.mismatch))
    assert f"{high.member.name}: trainer and engine" in caplog.text
    assert low.member.name not in caplog.text
    assert bound.member.name not in caplog.text


def test_no_samples(bank: AdapterBank) -> None:
    update = gradient_step(bank, build_optimizer(bank, CONFIG), [], CONFIG, 1.0)
    assert (update.members, update.tokens, update.passed_tokens) == ((), 0, 0)
