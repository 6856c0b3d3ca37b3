import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from populora.population.lowrank import LowRank
from populora.population.operators.mutations import ComponentMask, FullGaussian, LayerGaussian, SvdPerturb

Make = Callable[..., dict[str, LowRank]]


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def dense(update: LowRank) -> np.ndarray:
    return update.b.double().numpy() @ update.a.double().numpy()


def decompose(update: LowRank) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Full singular value decomposition of the materialised product, cut to the rank."""
    u, s, vh = np.linalg.svd(dense(update))
    return u[:, : update.rank], s[: update.rank], vh[: update.rank]


def test_svd_perturb_scales_singular_values_log_normally(make_adapter: Make) -> None:
    update = make_adapter(0, rank=4, shapes=((12, 10),))["layers.0.proj"]
    singular = decompose(update)[1]
    assert (singular[:-1] / singular[1:]).min() > 1.6, "the order must survive the noise"
    child = SvdPerturb(strength=0.1)([{f"{i:03}": update for i in range(400)}], generator(0))
    logs = np.array([np.log(decompose(other)[1] / singular) for other in child.values()])
    assert np.std(logs) == pytest.approx(0.1, rel=0.08)
    assert abs(np.mean(logs)) < 0.01
    assert np.abs(np.corrcoef(logs.T) - np.eye(4)).max() < 0.2, "each value has noise of its own"


def test_svd_perturb_rotates_each_basis_within_its_span(make_adapter: Make) -> None:
    parent = make_adapter(1)
    u, _, vh = decompose(parent["layers.0.proj"])
    turns = []
    for seed in range(60):
        child = SvdPerturb(strength=0.1)([parent], generator(seed))["layers.0.proj"]
        other_u, _, other_vh = decompose(child)
        np.testing.assert_allclose(other_u @ other_u.T, u @ u.T, atol=1e-4)
        np.testing.assert_allclose(other_vh.T @ other_vh, vh.T @ vh, atol=1e-4)
        turns += [
            np.arccos(np.clip(abs(u[:, 0] @ other_u[:, 0]), 0, 1)),
            np.arccos(np.clip(abs(vh[0] @ other_vh[0]), 0, 1)),
        ]
    assert np.sqrt(np.mean(np.square(turns))) == pytest.approx(0.1, rel=0.15)


def test_svd_perturb_without_strength_keeps_the_product(make_adapter: Make) -> None:
    parent = make_adapter(2)
    child = SvdPerturb(strength=0.0)([parent], generator(0))
    for path, update in parent.items():
        np.testing.assert_allclose(dense(child[path]), dense(update), atol=1e-4)


@pytest.mark.parametrize(("rank", "dropped"), [(8, 3), (4, 2), (10, 3), (1, 1)])
def test_component_mask_drops_whole_components_and_no_others(
    make_adapter: Make, rank: int, dropped: int
) -> None:
    parent = make_adapter(3, rank=rank)
    child = ComponentMask()([parent], generator(5))
    for path, update in parent.items():
        u, s, vh = decompose(update)
        remaining = u.T @ dense(child[path]) @ vh.T
        np.testing.assert_allclose(remaining - np.diag(np.diag(remaining)), 0, atol=1e-4 * s[0])
        kept = np.abs(np.diag(remaining)) > 0.5 * s
        np.testing.assert_allclose(np.diag(remaining), np.where(kept, s, 0), atol=1e-4 * s[0])
        assert rank - kept.sum() == dropped
        restarted = (child[path].b == 0).all(dim=0)
        assert int(restarted.sum()) == dropped
        assert (child[path].a[restarted].abs().sum(dim=1) > 0).all()


def test_component_mask_drops_every_component_equally_often(make_adapter: Make) -> None:
    update = make_adapter(4, rank=4, shapes=((10, 10),))["layers.0.proj"]
    u, s, vh = decompose(update)
    child = ComponentMask()([{f"{i:03}": update for i in range(400)}], generator(0))
    drops = np.mean([np.diag(u.T @ dense(other) @ vh.T) < 0.5 * s for other in child.values()], axis=0)
    np.testing.assert_allclose(drops, 0.5, atol=0.1)


def test_layer_gaussian_touches_a_third_of_the_modules(make_adapter: Make) -> None:
    parent = make_adapter(5, shapes=((400, 300),) * 12)
    child = LayerGaussian()([parent], generator(0))
    changed = [path for path in parent if not torch.equal(child[path].a, parent[path].a)]
    assert len(changed) == 4
    for path, update in parent.items():
        if path in changed:
            for old, new in ((update.a, child[path].a), (update.b, child[path].b)):
                assert np.std((new - old).numpy()) == pytest.approx(0.1 * np.std(old.numpy()), rel=0.1)
        else:
            assert torch.equal(child[path].a, update.a)
            assert torch.equal(child[path].b, update.b)


def test_layer_gaussian_draws_its_modules(make_adapter: Make) -> None:
    parent = make_adapter(5, shapes=((4, 3),) * 12)
    children = [LayerGaussian()([parent], generator(seed)) for seed in range(8)]
    changed = {tuple(p for p in parent if not torch.equal(child[p].a, parent[p].a)) for child in children}
    assert len(changed) > 1


def test_layer_gaussian_changes_at_least_one_module(make_adapter: Make) -> None:
    parent = make_adapter(6, shapes=((20, 20),))
    child = LayerGaussian()([parent], generator(0))
    assert not torch.equal(child["layers.0.proj"].b, parent["layers.0.proj"].b)


def test_full_gaussian_perturbs_every_tensor_by_its_own_scale(make_adapter: Make) -> None:
    parent = make_adapter(7, rank=8, shapes=((500, 300), (300, 500)))
    child = FullGaussian()([parent], generator(0))
    for path, update in parent.items():
        for old, new in ((update.a, child[path].a), (update.b, child[path].b)):
            noise = (new - old).numpy()
            assert np.std(noise) == pytest.approx(0.15 * np.std(old.numpy()), rel=0.06)
            assert abs(np.mean(noise)) < 5 * np.std(noise) / math.sqrt(noise.size)
