"""The archive against nearest centroids and sums found by hand."""

import io

import numpy as np
import pytest
import torch

from populora.callbacks import Archive
from populora.callbacks.problem_archive import ProblemArchive, make_centroids
from populora.errors import CheckpointError, ConfigError
from populora.records import Match

NAMES = ("ast_depth", "cyclomatic", "lines", "variables")
PROGRAMS = [
    "def f(x):\n    return x",
    "def f(x):\n    y = x + 1\n    z = y * 2\n    return z",
    "def f(xs):\n    total = 0\n    for x in xs:\n        if x > 0:\n            total += x\n    return total",
]
RANGES = np.array([(3, 18), (1, 16), (2, 40), (1, 16)])
MEASURED = np.array([(3, 1, 2, 1), (4, 1, 4, 3), (5, 3, 6, 3)])


def _batch(records, population, rates, iteration=0, task="deduction"):
    teacher = population.teachers[0]
    problems = [records.problem(program, task=task) for program in PROGRAMS]
    return records.batch(
        iteration,
        matches=[Match(teacher, population.students[0], 0.5)],
        proposals=[
            *(records.proposal(teacher, p, solve_rate=r) for p, r in zip(problems, rates, strict=True)),
            records.proposal(teacher, failure="syntax"),
        ],
    )


def test_centroids_are_many_bounded_even_and_repeatable():
    centroids = make_centroids(4, 32, seed=3)
    assert centroids.shape == (32, 4)
    assert 0 <= centroids.min() < 0.2
    assert 0.8 < centroids.max() <= 1
    assert np.array_equal(centroids, make_centroids(4, 32, seed=3))
    assert not np.array_equal(centroids, make_centroids(4, 32, seed=4))
    points = np.random.default_rng(0).uniform(size=(8_000, 4))
    nearest = np.linalg.norm(points[:, None] - centroids, axis=-1).argmin(axis=1)
    shares = np.bincount(nearest, minlength=32) / len(points) * 32
    assert shares.min() > 0.3
    assert shares.max() < 2


def test_coverage_and_quality_of_known_programs(run, records):
    callback = Archive(cells=200, figure_every=2)
    run.finish_batch(callback, _batch(records, run.population, [0.25, 0.0, 1.0]))
    scaled = (MEASURED - RANGES[:, 0]) / (RANGES[:, 1] - RANGES[:, 0])
    distances = np.linalg.norm(scaled[:, None] - callback.archive.centroids, axis=-1)
    cells = distances.argmin(axis=1)
    best = {
        cell: max(c for c, place in zip((0.75, 0, 0), cells, strict=True) if place == cell) for cell in cells
    }
    assert run.scalars["archive/filled_cells", 1] == len(best)
    assert run.scalars["archive/coverage", 1] == len(best) / 200
    assert run.scalars["archive/qd_score", 1] == pytest.approx(sum(best.values()))
    for index, name in enumerate(NAMES):
        assert run.scalars[f"complexity/{name}/teacher-0", 1] == pytest.approx(MEASURED[:, index].mean())
        assert run.scalars[f"complexity/{name}/all", 1] == pytest.approx(MEASURED[:, index].mean())


def test_the_hardest_of_a_cell_stays(run, records):
    callback = Archive(cells=50)
    for iteration, rate in enumerate([0.5, 0.125, 0.75, 0.0]):
        run.finish_batch(callback, _batch(records, run.population, [rate] * 3, iteration))
    assert {elite.challenge for elite in callback.archive.elites} == {0.875}


def test_given_programs_do_not_count(run, records):
    callback = Archive(cells=50)
    run.finish_batch(callback, _batch(records, run.population, [0.5] * 3, task="induction"))
    assert callback.archive.filled == 0
    assert not [tag for tag, _ in run.scalars if tag.startswith("complexity/")]


def test_a_program_beyond_the_ranges_fills_their_end(records):
    archive = ProblemArchive(("lines", "variables"), make_centroids(2, 30, 0))
    long = "def f(x):\n" + "".join(f"    v{i} = x\n" for i in range(90)) + "    return x"
    archive.add([records.problem(long), records.problem("def f(:")], [0.5, 0.5])
    assert [elite.descriptors for elite in archive.elites] == [(40.0, 16.0)]


def test_state_survives_a_checkpoint(run, records):
    callback = Archive(cells=50, seed=1)
    run.finish_batch(callback, _batch(records, run.population, [0.25, 0.5, 0.75]))
    file = io.BytesIO()
    torch.save(callback.state_dict(), file)
    file.seek(0)
    restored = Archive(cells=50, seed=2)
    restored.load_state_dict(torch.load(file, weights_only=True))
    assert np.array_equal(restored.archive.centroids, make_centroids(4, 50, seed=1))
    assert restored.archive.elites == callback.archive.elites
    for each in (callback, restored):
        run.scalars.clear()
        run.finish_batch(each, _batch(records, run.population, [0.125] * 3, iteration=1))
        assert run.scalars["archive/qd_score", 2] == pytest.approx(0.875 * callback.archive.filled)
    assert restored.state_dict()["history"] == callback.state_dict()["history"]


def test_a_checkpoint_of_another_archive_is_refused():
    state = Archive(cells=20).state_dict()
    with pytest.raises(CheckpointError, match="20 cells"):
        Archive(cells=30).load_state_dict(state)
    with pytest.raises(CheckpointError, match="descriptors"):
        Archive(("lines", "variables"), cells=20).load_state_dict(state)


def test_the_figure_is_logged_when_due_and_at_the_end(run, records):
    callback = Archive(cells=20, figure_every=2)
    for iteration in range(3):
        run.finish_batch(callback, _batch(records, run.population, [0.5] * 3, iteration))
    callback.on_train_end(run.trainer, run.module)
    assert [event.step for event in run.events().Images("archive")] == [2, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"descriptors": ["lines"]}, "at least 2"),
        ({"descriptors": ["lines", "ast_dept"]}, "did you mean 'ast_depth'"),
        ({"cells": 0}, r"Archive\(cells=0\)"),
    ],
)
def test_arguments(arguments, message):
    with pytest.raises(ConfigError, match=message):
        Archive(**arguments)
