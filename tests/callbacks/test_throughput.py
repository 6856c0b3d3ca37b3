"""Stages add up to the wall clock."""

import time
from types import SimpleNamespace

import lightning as L
import pytest
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.demos.boring_classes import BoringModel
from lightning.pytorch.profilers import SimpleProfiler

from populora.callbacks import Throughput
from populora.callbacks.callback_clock import CallbackClock
from populora.records import Timings

STAGES = (
    "sync", "generate", "verify", "pack", "forward", "backward", "optimizer", "callbacks", "checkpoint", "rest"
)  # fmt: skip


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until told."""
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(time, "perf_counter", lambda: now.seconds)
    return now


def test_every_second_between_two_iterations_is_logged(run, records, clock):
    member = run.population.students[0]
    callback, keeper = Throughput(), ModelCheckpoint(save_last=True)
    run.trainer.checkpoint_callbacks = [keeper]
    callback.on_train_start(run.trainer, run.module)
    callback.on_train_epoch_start(run.trainer, run.module)
    run.module.last_update = records.update(member, seconds=3.0, tokens=90, passed=45)
    for iteration, wall in enumerate([10.0, 15.0]):
        with run.trainer.profiler.profile("[Callback]Evolution.on_train_batch_end"):
            clock.seconds += 0.75
        with run.trainer.profiler.profile(f"[Callback]{keeper.state_key}.on_train_batch_end"):
            clock.seconds += 0.25
            with run.trainer.profiler.profile("[Callback]Archive.on_save_checkpoint"):
                clock.seconds += 1.0
        clock.seconds += wall - 2.0
        completion = records.completion(tokens=30)
        run.finish_batch(
            callback,
            records.batch(
                iteration,
                attempts=[records.attempt(member, True, completion=completion)] * 2,
                timings=Timings(0.5, 1.0, 0.25, 2.0, 0.5),
            ),
        )
        step = iteration + 1
        found = {stage: run.scalars[f"seconds/{stage}", step] for stage in STAGES}
        assert run.scalars["seconds/iteration", step] == wall
        assert found == {
            "sync": 0.5, "generate": 3.0, "verify": 0.75, "pack": 0.0, "forward": 3.0, "backward": 0.0,
            "optimizer": 0.0, "callbacks": 0.75, "checkpoint": 1.25, "rest": pytest.approx(wall - 9.25),
        }  # fmt: skip
        assert run.scalars["throughput/generated_tokens_per_second", step] == 60 / 3
        assert run.scalars["throughput/trained_tokens_per_second", step] == 30
        assert run.scalars["throughput/tokens_per_second", step] == 60 / wall
        assert run.scalars["throughput/passed_share", step] == 0.5


def test_the_end_shows_the_shares_of_all_iterations(run, records, clock, caplog):
    callback = Throughput()
    callback.on_train_start(run.trainer, run.module)
    callback.on_train_epoch_start(run.trainer, run.module)
    run.module.last_update = records.update(run.population.students[0], seconds=3.0)
    for iteration in range(2):
        clock.seconds += 6.0
        run.finish_batch(callback, records.batch(iteration, timings=Timings(solve=1.5)))
    with caplog.at_level("INFO"):
        callback.on_train_end(run.trainer, run.module)
    assert "Of 12 s of iterations: forward 50.0%, generate 25.0%, rest 25.0%" in caplog.text


def test_a_profiler_of_the_user_s_own_stays(run):
    run.trainer.profiler = profiler = SimpleProfiler()
    Throughput().on_train_start(run.trainer, run.module)
    assert run.trainer.profiler is profiler


def test_lightning_tells_the_clock_of_callbacks_and_checkpoints(tmp_path, clock):
    """The names that Lightning gives its actions are the ones the clock understands."""

    class Slow(L.Callback):
        def on_train_batch_end(self, *_):
            clock.seconds += 2.0

    class Keeper(ModelCheckpoint):
        def on_train_batch_end(self, *_):
            clock.seconds += 5.0

    keeper, profiler = Keeper(), CallbackClock()
    profiler.checkpointing = frozenset({keeper.state_key})
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False}
    trainer = L.Trainer(
        default_root_dir=tmp_path,
        callbacks=[Slow(), keeper],
        profiler=profiler,
        accelerator="cpu",
        limit_train_batches=3,
        limit_val_batches=0,
        max_epochs=1,
        **quiet,
    )
    trainer.fit(BoringModel())
    assert profiler.take() == (6.0, 15.0)
