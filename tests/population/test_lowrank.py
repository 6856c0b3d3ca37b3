import math

import numpy as np
import pytest
import torch

from populora.population.lowrank import LowRank, cayley_rotation, compose, fresh_rows, svd, weighted_sum


def random_update(seed: int, out: int, width: int, rank: int) -> LowRank:
    generator = torch.Generator().manual_seed(seed)
    return LowRank(torch.randn(rank, width, generator=generator), torch.randn(out, rank, generator=generator))


def dense(update: LowRank) -> np.ndarray:
    return update.b.double().numpy() @ update.a.double().numpy()


def best_approximation(matrix: np.ndarray, rank: int) -> np.ndarray:
    u, s, vh = np.linalg.svd(matrix)
    return (u[:, :rank] * s[:rank]) @ vh[:rank]


@pytest.mark.parametrize(
    ("out", "width", "rank"), [(30, 20, 6), (20, 30, 6), (5, 40, 8), (40, 5, 8), (7, 7, 1)]
)
def test_svd_agrees_with_the_dense_decomposition(out: int, width: int, rank: int) -> None:
    update = random_update(0, out, width, rank)
    parts = svd(update)
    size = min(out, width, rank)
    np.testing.assert_allclose(parts.s, np.linalg.svd(dense(update))[1][:size], rtol=1e-4)
    np.testing.assert_allclose((parts.u * parts.s) @ parts.vh, dense(update), atol=1e-4)
    np.testing.assert_allclose(parts.u.T @ parts.u, np.eye(size), atol=1e-5)
    np.testing.assert_allclose(parts.vh @ parts.vh.T, np.eye(size), atol=1e-5)


@pytest.mark.parametrize(("out", "width", "rank"), [(30, 20, 6), (5, 40, 8), (7, 7, 1)])
def test_compose_restores_product_and_rank(out: int, width: int, rank: int) -> None:
    update = random_update(1, out, width, rank)
    again = compose(svd(update), rank, torch.Generator().manual_seed(0))
    assert again.a.shape == update.a.shape
    assert again.b.shape == update.b.shape
    np.testing.assert_allclose(dense(again), dense(update), atol=1e-4)


def test_compose_restarts_missing_components_like_fresh_rows() -> None:
    update = random_update(2, 50, 300, 8)
    update.b[:, 3:] = 0
    again = compose(svd(update), 8, torch.Generator().manual_seed(0))
    dead = (again.b == 0).all(dim=0)
    assert int(dead.sum()) == 5
    bound = 1 / math.sqrt(300)
    assert again.a[dead].abs().max() <= bound
    assert again.a[dead].std() == pytest.approx(bound / math.sqrt(3), rel=0.1)
    np.testing.assert_allclose(dense(again), dense(update), atol=1e-4)


def test_rows_of_a_keep_the_norm_of_fresh_rows() -> None:
    update = random_update(3, 200, 400, 8)
    again = compose(svd(update), 8, torch.Generator().manual_seed(0))
    fresh = fresh_rows(1000, 400, torch.Generator().manual_seed(0))
    expected = float(fresh.norm(dim=1).mean())
    np.testing.assert_allclose(again.a.norm(dim=1), expected, rtol=0.01)


@pytest.mark.parametrize("weights", [(0.5, 0.5), (1.0, 1.0), (-0.3, 1.3), (0.0, 1.0)])
def test_weighted_sum_is_the_best_approximation_of_the_sum_of_products(weights: tuple[float, float]) -> None:
    one, two = random_update(4, 30, 20, 6), random_update(5, 30, 20, 6)
    found = weighted_sum([one, two], weights, torch.Generator().manual_seed(0))
    expected = best_approximation(weights[0] * dense(one) + weights[1] * dense(two), 6)
    np.testing.assert_allclose(dense(found), expected, atol=1e-3)


@pytest.mark.parametrize("size", [1, 2, 16])
def test_cayley_rotation_is_orthogonal_without_reflection(size: int) -> None:
    rotation = cayley_rotation(size, 0.3, torch.Generator().manual_seed(0)).double().numpy()
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(size), atol=1e-5)
    assert np.linalg.det(rotation) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("size", [2, 32])
def test_cayley_rotation_turns_axes_by_the_angle_asked_for(size: int) -> None:
    generator = torch.Generator().manual_seed(0)
    turned = [torch.diagonal(cayley_rotation(size, 0.1, generator)).clamp(-1, 1).acos() for _ in range(400)]
    assert float(torch.cat(turned).square().mean().sqrt()) == pytest.approx(0.1, rel=0.1)


def test_fresh_rows_follow_the_kaiming_rule_of_lora() -> None:
    reference = torch.empty(500, 64)
    torch.nn.init.kaiming_uniform_(reference, a=math.sqrt(5), generator=torch.Generator().manual_seed(1))
    rows = fresh_rows(500, 64, torch.Generator().manual_seed(0))
    assert float(rows.std()) == pytest.approx(float(reference.std()), rel=0.02)
    assert float(rows.abs().max()) == pytest.approx(float(reference.abs().max()), rel=0.01)
    assert abs(float(rows.mean())) < 1e-3
