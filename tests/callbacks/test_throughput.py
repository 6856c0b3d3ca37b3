"""Stages add up to the wall clock."""

import time

import pytest

from populora.callbacks import Throughput
from populora.callbacks.throughput import stage_seconds
from populora.records import Timings


def test_rest_is_what_the_stages_leave():
    stages = stage_seconds(Timings(1.0, 2.0, 3.0, 4.0, 5.0), training=6.0, wall=25.0)
    assert stages == {
        "sync": 1, "propose": 2, "validate": 3, "solve": 4, "grade": 5, "train": 6, "rest": 4,
    }  # fmt: skip


def test_every_second_between_two_iterations_is_logged(run, records, monkeypatch):
    clock = iter([100.0, 110.0, 125.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    member = run.population.students[0]
    callback = Throughput()
    callback.on_train_start(run.trainer, run.module)
    callback.on_train_epoch_start(run.trainer, run.module)
    run.module.last_update = records.update(member, seconds=3.0, tokens=90, passed=45)
    for iteration, wall in enumerate([10.0, 15.0]):
        completion = records.completion(tokens=30)
        run.finish_batch(
            callback,
            records.batch(
                iteration,
                attempts=[records.attempt(member, True, completion=completion)] * 2,
                timings=Timings(0.5, 1.0, 0.5, 2.0, 0.5),
            ),
        )
        step = iteration + 1
        assert run.scalars["seconds/iteration", step] == wall
        stages = ("sync", "propose", "validate", "solve", "grade", "train", "rest")
        assert sum(run.scalars[f"seconds/{stage}", step] for stage in stages) == pytest.approx(wall)
        assert run.scalars["throughput/generated_tokens_per_second", step] == 60 / 3
        assert run.scalars["throughput/trained_tokens_per_second", step] == 30
        assert run.scalars["throughput/tokens_per_second", step] == 60 / wall
        assert run.scalars["throughput/passed_share", step] == 0.5
