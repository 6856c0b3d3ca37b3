from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
import torch

from populora.population.lowrank import LowRank
from populora.population.operators.controls import CopyParent, LinearMean
from populora.population.operators.crossovers import Dare, Extrapolate, ModuleSelect, SvdSubspace

Make = Callable[..., dict[str, LowRank]]


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def dense(update: LowRank) -> np.ndarray:
    return update.b.double().numpy() @ update.a.double().numpy()


def components(update: LowRank, start: int, stop: int) -> np.ndarray:
    """Sum of some singular components of the materialised product."""
    u, s, vh = np.linalg.svd(dense(update))
    return (u[:, start:stop] * s[start:stop]) @ vh[start:stop]


def truncated(matrix: np.ndarray, rank: int) -> np.ndarray:
    u, s, vh = np.linalg.svd(matrix)
    return (u[:, :rank] * s[:rank]) @ vh[:rank]


@pytest.mark.parametrize(("weight", "factor"), [(0.5, 0.5), (1.0, 1.0)])
def test_dare_combines_the_products_in_expectation(make_adapter: Make, weight: float, factor: float) -> None:
    """The rank exceeds the module's width, so nothing is cut off and the rescaling makes the mean exact."""
    one, two = (make_adapter(seed, rank=5, shapes=((5, 4),)) for seed in (0, 1))
    expected = factor * (dense(one["layers.0.proj"]) + dense(two["layers.0.proj"]))
    operator = Dare(drop_rate=0.4, weight=weight)
    children = [dense(operator([one, two], generator(seed))["layers.0.proj"]) for seed in range(250)]
    error = np.std(children, axis=0) / np.sqrt(len(children))
    assert (np.abs(np.mean(children, axis=0) - expected) < 5 * error).all()


def test_dare_drops_entries_of_the_factors_at_its_rate() -> None:
    """With rank 1 and a single output, an entry of the child is b·a/(0.3)² when both survive, else 0."""
    one = {"proj": LowRank(torch.ones(1, 400), torch.ones(1, 1))}
    silent = {"proj": LowRank(torch.ones(1, 400), torch.zeros(1, 1))}
    values: Counter[float] = Counter()
    for seed in range(100):
        values.update(
            np.round(dense(Dare(weight=1.0)([one, silent], generator(seed))["proj"]), 3).ravel().tolist()
        )
    assert values.keys() == {0.0, round(1 / 0.09, 3)}
    assert values[0.0] / values.total() == pytest.approx(1 - 0.3 * 0.3, abs=0.05)


def test_dare_without_dropping_is_the_mean(make_adapter: Make) -> None:
    one, two = make_adapter(2), make_adapter(3)
    child = Dare(drop_rate=0.0)([one, two], generator(0))
    for path in one:
        np.testing.assert_allclose(
            dense(child[path]), truncated((dense(one[path]) + dense(two[path])) / 2, 8), atol=1e-3
        )


def test_module_select_takes_modules_whole_and_evenly(make_adapter: Make) -> None:
    one, two = (make_adapter(seed, rank=2, shapes=((4, 4),) * 400) for seed in (4, 5))
    child = ModuleSelect()([one, two], generator(0))
    from_second = 0
    for path, update in child.items():
        parent = two if torch.equal(update.a, two[path].a) else one
        from_second += parent is two
        assert torch.equal(update.a, parent[path].a)
        assert torch.equal(update.b, parent[path].b)
    assert from_second / 400 == pytest.approx(0.5, abs=0.1)


def test_module_select_by_layer_keeps_a_layer_together() -> None:
    paths = [f"model.layers.{i}.{name}" for i in range(60) for name in ("attn.q_proj", "mlp.up.0")]
    one, two = ({p: LowRank(torch.full((2, 3), v), torch.full((4, 2), v)) for p in paths} for v in (1.0, 2.0))
    child = ModuleSelect(by_layer=True)([one, two], generator(0))
    origin = {path: float(update.a[0, 0]) for path, update in child.items()}
    assert all(
        origin[f"model.layers.{i}.attn.q_proj"] == origin[f"model.layers.{i}.mlp.up.0"] for i in range(60)
    )
    assert set(origin.values()) == {1.0, 2.0}


def test_svd_subspace_splits_at_a_uniform_component(make_adapter: Make) -> None:
    one, two = (make_adapter(seed, rank=4, shapes=((12, 10),))["layers.0.proj"] for seed in (6, 7))
    expected = [components(one, 0, k) + components(two, k, 4) for k in range(5)]
    many = [{f"{i:03}": update for i in range(200)} for update in (one, two)]
    child = SvdSubspace()(many, generator(0))
    splits: Counter[int] = Counter()
    for update in child.values():
        matching = [k for k, mixed in enumerate(expected) if np.allclose(dense(update), mixed, atol=1e-3)]
        assert len(matching) == 1
        splits.update(matching)
    assert splits.keys() == {1, 2, 3}
    assert all(count / 200 == pytest.approx(1 / 3, abs=0.12) for count in splits.values())


def test_svd_subspace_of_rank_one_takes_the_first_parent(make_adapter: Make) -> None:
    one, two = make_adapter(8, rank=1), make_adapter(9, rank=1)
    child = SvdSubspace()([one, two], generator(0))
    for path, update in one.items():
        np.testing.assert_allclose(dense(child[path]), dense(update), atol=1e-4)


def test_extrapolate_goes_beyond_the_second_parent_by_one_eta(make_adapter: Make) -> None:
    one, two = (make_adapter(seed, rank=6, shapes=((6, 5), (5, 6))) for seed in (10, 11))
    etas = []
    for seed in range(80):
        child = Extrapolate()([one, two], generator(seed))
        found = []
        for path in one:
            step = dense(two[path]) - dense(one[path])
            eta = float(((dense(child[path]) - dense(one[path])) * step).sum() / (step * step).sum())
            np.testing.assert_allclose(dense(child[path]), dense(one[path]) + eta * step, atol=1e-3)
            found.append(eta)
        assert found[0] == pytest.approx(found[1], abs=1e-4)
        etas.append(found[0])
    assert min(etas) == pytest.approx(1.0, abs=0.04)
    assert max(etas) == pytest.approx(1.5, abs=0.04)
    assert np.mean(etas) == pytest.approx(1.25, abs=0.06)


def test_extrapolate_is_cut_to_the_best_approximation(make_adapter: Make) -> None:
    one, two = make_adapter(12, rank=4), make_adapter(13, rank=4)
    child = Extrapolate(low=1.2, high=1.2)([one, two], generator(0))
    for path in one:
        expected = truncated(-0.2 * dense(one[path]) + 1.2 * dense(two[path]), 4)
        np.testing.assert_allclose(dense(child[path]), expected, atol=1e-3)


def test_linear_mean_is_the_mean_of_products_not_of_factors(make_adapter: Make) -> None:
    one, two = make_adapter(14), make_adapter(15)
    child = LinearMean()([one, two], generator(0))
    for path in one:
        expected = truncated((dense(one[path]) + dense(two[path])) / 2, 8)
        np.testing.assert_allclose(dense(child[path]), expected, atol=1e-3)
        of_factors = LowRank((one[path].a + two[path].a) / 2, (one[path].b + two[path].b) / 2)
        assert np.abs(dense(of_factors) - expected).max() > 0.1


def test_copy_parent_copies(make_adapter: Make) -> None:
    parent = make_adapter(16)
    child = CopyParent()([parent], generator(0))
    for path, update in parent.items():
        assert torch.equal(child[path].a, update.a)
        assert torch.equal(child[path].b, update.b)
        assert child[path].a.data_ptr() != update.a.data_ptr()
