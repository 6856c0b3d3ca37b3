from collections.abc import Callable

import pytest
import torch

from populora.config import LearningConfig
from populora.errors import CheckpointError
from populora.population.bank import AdapterBank
from populora.population.optimizer import build_optimizer, load_moments, moments, reset_member

MakeBank = Callable[..., AdapterBank]
CONFIG = LearningConfig(learning_rate=0.01, weight_decay=0.1)


def give_gradients(bank: AdapterBank, *names: str, seed: int = 0) -> None:
    generator = torch.Generator().manual_seed(seed)
    for name in names:
        for parameter in bank.parameters_of(name):
            parameter.grad = torch.randn(parameter.shape, generator=generator)


def step(bank: AdapterBank, optimizer: torch.optim.Optimizer, *names: str, seed: int = 0) -> None:
    give_gradients(bank, *names, seed=seed)
    optimizer.step()
    optimizer.zero_grad()


def copies(bank: AdapterBank, name: str) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in bank.parameters_of(name)]


def same(one: list[torch.Tensor], two: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


def test_each_member_has_its_group(make_bank: MakeBank) -> None:
    bank = make_bank()
    optimizer = build_optimizer(bank, CONFIG)
    for name, group in zip(bank.names, optimizer.param_groups, strict=True):
        assert group["member"] == name
        assert all(a is b for a, b in zip(group["params"], bank.parameters_of(name), strict=True))
        assert (group["lr"], group["betas"], group["weight_decay"]) == (0.01, (0.9, 0.999), 0.1)


def test_first_step_is_that_of_adamw(make_bank: MakeBank) -> None:
    """The bias-corrected first step is lr·g/(|g| + ε), after decay by 1 − lr·λ."""
    bank = make_bank()
    optimizer = build_optimizer(bank, CONFIG)
    before = copies(bank, "teacher-0")
    step(bank, optimizer, "teacher-0")
    give_gradients(bank, "teacher-0")
    for old, parameter in zip(before, bank.parameters_of("teacher-0"), strict=True):
        gradient = parameter.grad
        expected = old * (1 - 0.01 * 0.1) - 0.01 * gradient / (gradient.abs() + 1e-8)
        torch.testing.assert_close(parameter.detach(), expected)


def test_member_without_gradients_is_bitwise_unchanged(make_bank: MakeBank) -> None:
    bank = make_bank()
    optimizer = build_optimizer(bank, CONFIG)
    step(bank, optimizer, "teacher-0", "student-0")
    weights = copies(bank, "student-0")
    state = {key: tensor.clone() for key, tensor in moments(optimizer, "student-0").items()}
    moved = copies(bank, "teacher-0")
    step(bank, optimizer, "teacher-0")
    assert same(copies(bank, "student-0"), weights)
    assert all(torch.equal(tensor, state[key]) for key, tensor in moments(optimizer, "student-0").items())
    assert not same(copies(bank, "teacher-0"), moved)


def test_reset_forgets_one_member(make_bank: MakeBank) -> None:
    bank = make_bank()
    optimizer = build_optimizer(bank, CONFIG)
    step(bank, optimizer, *bank.names)
    kept = {key: tensor.clone() for key, tensor in moments(optimizer, "teacher-1").items()}
    reset_member(optimizer, "teacher-0")
    assert moments(optimizer, "teacher-0") == {}
    assert moments(optimizer, "teacher-1").keys() == kept.keys()
    assert all(torch.equal(tensor, kept[key]) for key, tensor in moments(optimizer, "teacher-1").items())
    step(bank, optimizer, *bank.names)
    assert float(moments(optimizer, "teacher-0")["model.layers.0.mlp.up_proj.a.step"]) == 1
    assert float(moments(optimizer, "teacher-1")["model.layers.0.mlp.up_proj.a.step"]) == 2


def test_restored_moments_continue_as_if_uninterrupted(make_bank: MakeBank) -> None:
    bank, resumed = make_bank(), make_bank()
    optimizer, other = build_optimizer(bank, CONFIG), build_optimizer(resumed, CONFIG)
    for seed in range(3):
        step(bank, optimizer, "teacher-0", seed=seed)
    for name in bank.names:
        resumed.write(name, bank.read(name))
        load_moments(other, name, moments(optimizer, name))
    step(bank, optimizer, *bank.names, seed=9)
    step(resumed, other, *bank.names, seed=9)
    for name in bank.names:
        assert same(copies(bank, name), copies(resumed, name))
    labels = moments(other, "teacher-0")
    assert float(labels["model.layers.1.self_attn.q_proj.b.step"]) == 4
    assert labels["model.layers.1.self_attn.q_proj.b.exp_avg"].shape == (64, 4)


def test_loading_replaces_and_copies(make_bank: MakeBank) -> None:
    bank = make_bank()
    optimizer = build_optimizer(bank, CONFIG)
    step(bank, optimizer, *bank.names)
    state = moments(optimizer, "teacher-0")
    load_moments(optimizer, "teacher-1", state)
    step(bank, optimizer, "teacher-1", seed=1)
    key = "model.layers.0.mlp.up_proj.a.exp_avg"
    assert not torch.equal(moments(optimizer, "teacher-1")[key], state[key])
    load_moments(optimizer, "teacher-1", {})
    assert moments(optimizer, "teacher-1") == {}


def test_moments_that_do_not_fit_are_refused_and_nothing_changes(make_bank: MakeBank) -> None:
    bank = make_bank()
    optimizer = build_optimizer(bank, CONFIG)
    step(bank, optimizer, "teacher-0")
    state = moments(optimizer, "teacher-0")
    key = "model.layers.0.mlp.up_proj.a.exp_avg"
    for spoiled, message in (
        ({**state, key: state[key][:2]}, r"shape \(2, 64\) at .*up_proj.a.exp_avg, expected \(4, 64\)"),
        ({k: v for k, v in state.items() if k != key}, "does not fit its parameters"),
        ({**state, "elsewhere.a.step": torch.tensor(1.0)}, "does not fit its parameters"),
    ):
        with pytest.raises(CheckpointError, match=message):
            load_moments(optimizer, "teacher-0", spoiled)
    assert moments(optimizer, "teacher-0").keys() == state.keys()
    with pytest.raises(ValueError, match="no member 'nobody'"):
        moments(optimizer, "nobody")
