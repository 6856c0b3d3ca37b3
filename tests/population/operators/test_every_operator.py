"""What holds for every registered operator."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from populora.population.lowrank import Adapter, LowRank
from populora.population.operators import Operator, operators

Make = Callable[..., dict[str, LowRank]]
MUTATIONS = {"svd_perturb", "layer_gaussian", "component_mask", "full_gaussian"}
CROSSOVERS = {"dare", "module_select", "svd_subspace", "extrapolate"}
CONTROLS = {"copy_parent", "linear_mean"}


@st.composite
def adapters(draw: st.DrawFn, out: int, width: int, rank: int) -> dict[str, LowRank]:
    """A parent as training may leave it: ordinary, fresh (B = 0), with dead or repeated components."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**20)))
    a = torch.randn(rank, width, generator=generator) * 10.0 ** draw(st.integers(-6, 3))
    b = torch.randn(out, rank, generator=generator) * 10.0 ** draw(st.integers(-6, 3))
    kind = draw(st.sampled_from(["ordinary", "fresh", "a zero", "dead component", "repeated"]))
    if kind == "fresh":
        b.zero_()
    elif kind == "a zero":
        a.zero_()
    elif kind == "dead component":
        a[0], b[:, 0] = 0, 0
    elif kind == "repeated":
        a[:], b[:] = a[:1], b[:, :1]
    return {"layers.0.proj": LowRank(a, b)}


@pytest.mark.parametrize("name", list(operators))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_children_are_finite_alive_and_of_the_same_shape(name: str, data: st.DataObject) -> None:
    operator = operators[name]()
    shape = data.draw(st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 6)))
    parents = [data.draw(adapters(*shape)) for _ in range(operator.arity)]
    before = [{p: (u.a.clone(), u.b.clone()) for p, u in parent.items()} for parent in parents]
    child = operator(parents, torch.Generator().manual_seed(data.draw(st.integers(0, 2**20))))
    assert child.keys() == parents[0].keys()
    for path, update in child.items():
        assert update.a.shape == parents[0][path].a.shape
        assert update.b.shape == parents[0][path].b.shape
        assert update.a.dtype == update.b.dtype == torch.float32
        assert torch.isfinite(update.a).all()
        assert torch.isfinite(update.b).all()
        dead = (update.a == 0).all(dim=1) & (update.b == 0).all(dim=0)
        assert not dead.any()
    for parent, copies in zip(parents, before, strict=True):
        for path, (a, b) in copies.items():
            assert torch.equal(parent[path].a, a)
            assert torch.equal(parent[path].b, b)


@pytest.mark.parametrize("name", list(operators))
def test_children_of_fresh_parents_learn(name: str, make_adapter: Make) -> None:
    """A gradient step moves the product of every component, although the parents' product is zero."""
    operator = operators[name]()
    parents = [make_adapter(seed, fresh=True) for seed in range(operator.arity)]
    child = operator(parents, torch.Generator().manual_seed(0))
    for update in child.values():
        assert torch.count_nonzero(update.b @ update.a) == 0
        a, b = update.a.requires_grad_(), update.b.requires_grad_()
        ((b @ a) * torch.randn(b.shape[0], a.shape[1])).sum().backward()
        assert b.grad is not None
        assert (b.grad.abs().sum(dim=0) > 0).all()


@pytest.mark.parametrize("name", list(operators))
def test_equal_seeds_give_equal_children(name: str, make_adapter: Make) -> None:
    operator = operators[name]()
    parents = [make_adapter(seed) for seed in range(operator.arity)]
    reordered = [dict(reversed(parent.items())) for parent in parents]
    one = operator(parents, torch.Generator().manual_seed(3))
    two = operator(reordered, torch.Generator().manual_seed(3))
    other = operator(parents, torch.Generator().manual_seed(4))
    for path in one:
        assert torch.equal(one[path].a, two[path].a)
        assert torch.equal(one[path].b, two[path].b)
    if name not in CONTROLS:
        assert any(not torch.equal(one[path].b, other[path].b) for path in one)


@pytest.mark.parametrize("name", list(operators))
def test_parameters_make_the_operator_again(name: str) -> None:
    operator = operators[name]()
    assert operators[name](**dict(operator.parameters)) == operator
    if operator.parameters:
        first, value = operator.parameters[0]
        assert dict(replace(operator, **{first: value / 2}).parameters)[first] == value / 2


def test_registry_holds_the_paper_s_eight_and_two_controls() -> None:
    assert set(operators) == MUTATIONS | CROSSOVERS | CONTROLS
    assert {name for name in operators if operators[name].arity == 1} == MUTATIONS | {"copy_parent"}
    assert [name for name in operators if operators[name].fitter_last] == ["extrapolate"]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_parents_that_are_not_finite_are_refused(bad: float, make_adapter: Make) -> None:
    parent = make_adapter(0)
    parent["layers.1.proj"].b[0, 0] = bad
    with pytest.raises(
        ValueError, match=r"parent's factors at layers\.1\.proj hold a value that is not finite"
    ):
        operators["full_gaussian"]()([parent], torch.Generator())


def test_wrong_number_and_unequal_parents_are_refused(make_adapter: Make) -> None:
    with pytest.raises(ValueError, match=r"Dare takes 2 parent\(s\), got 1"):
        operators["dare"]()([make_adapter(0)], torch.Generator())
    with pytest.raises(ValueError, match="equal modules and ranks"):
        operators["dare"]()([make_adapter(0, rank=4), make_adapter(1, rank=8)], torch.Generator())


@dataclass(frozen=True)
class Careless(Operator):
    """Loses a component and the rank, as asked."""

    arity = 1
    rank: int = 8

    def breed(self, parents: list[Adapter], generator: torch.Generator) -> Adapter:
        return {
            path: LowRank(torch.zeros_like(u.a[: self.rank]), torch.zeros_like(u.b[:, : self.rank]))
            for path, u in parents[0].items()
        }


def test_an_operator_of_the_user_s_own_gets_the_same_finish(make_adapter: Make) -> None:
    child = Careless()([make_adapter(0)], torch.Generator().manual_seed(0))
    assert all((update.a.abs().sum(dim=1) > 0).all() for update in child.values())
    with pytest.raises(
        ValueError, match=r"must have shapes \(8, 16\) and \(24, 8\), got \(7, 16\) and \(24, 7\)"
    ):
        Careless(rank=7)([make_adapter(0)], torch.Generator().manual_seed(0))
