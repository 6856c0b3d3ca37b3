"""The progress bar on a terminal and elsewhere."""

import io
import logging

import pytest
import rich
from rich.console import Console
from rich.text import Text

from populora.callbacks import RunProgress
from populora.callbacks.run_progress import describe
from populora.records import Match, Timings


@pytest.fixture
def batch(run, records):
    teacher, student = run.population.teachers[0], run.population.students[0]
    return records.batch(
        0,
        matches=[Match(teacher, student, 0.5)],
        proposals=[
            records.proposal(teacher, records.problem(), reward=0.5),
            records.proposal(teacher, failure="syntax", reward=-1.0),
        ],
        attempts=[
            *(records.attempt(student, correct, reward=1.0) for correct in (True, False, False, False)),
            records.attempt(student, True, from_buffer=True, reward=1.0),
        ],
        timings=Timings(propose=0.003, solve=0.004),
    )


def _console(monkeypatch, terminal):
    console = Console(file=io.StringIO(), force_terminal=terminal, width=110)
    monkeypatch.setattr(rich, "get_console", lambda: console)
    return console


def test_a_line_an_iteration_where_there_is_no_terminal(run, batch, monkeypatch, caplog):
    _console(monkeypatch, terminal=False)
    progress = RunProgress()
    progress.setup(run.trainer, run.module, "fit")
    progress.on_fit_start(run.trainer, run.module)
    progress.on_train_start(run.trainer, run.module)
    with caplog.at_level(logging.INFO):
        run.finish_batch(progress, batch)
    (line,) = [record.message for record in caplog.records]
    assert line.startswith(
        "Iteration 1 / 4: solved 25%, valid 50%, reward teachers -0.25 students +1.00, 3,000 tokens/s, about "
    )


def test_the_terminal_shows_iteration_and_stage(run, monkeypatch):
    console = _console(monkeypatch, terminal=True)
    progress = RunProgress()
    progress.setup(run.trainer, run.module, "fit")
    progress.on_fit_start(run.trainer, run.module)
    progress.on_train_start(run.trainer, run.module)
    run.data.stage_listener("solve", 384, 1536)
    progress.on_exception(run.trainer, run.module, KeyboardInterrupt())
    shown = Text.from_ansi(console.file.getvalue()).plain
    assert "iteration 0 / 4" in shown
    assert "solve" in shown
    assert "384 / 1,536" in shown


def test_the_terminal_shows_how_the_last_iteration_went(run, batch, monkeypatch, caplog):
    console = _console(monkeypatch, terminal=True)
    progress = RunProgress()
    progress.setup(run.trainer, run.module, "fit")
    progress.on_fit_start(run.trainer, run.module)
    progress.on_train_start(run.trainer, run.module)
    progress.on_train_batch_start(run.trainer, run.module, batch, 0)
    with caplog.at_level(logging.INFO):
        run.finish_batch(progress, batch)
    progress.teardown(run.trainer, run.module, "fit")
    shown = Text.from_ansi(console.file.getvalue()).plain
    assert "iteration 1 / 4" in shown
    assert "train" in shown
    assert "solved 25%, valid 50%, reward teachers -0.25 students +1.00, 3,000 tokens/s" in shown
    assert run.data.stage_listener is None
    assert not caplog.records


def test_nothing_solved_is_not_the_same_as_nothing_to_solve(run, records):
    failed = records.proposal(run.population.teachers[0], failure="syntax", reward=-1.0)
    assert describe(records.batch(proposals=[failed])).startswith("solved –, valid 0%, reward teachers -1.00")


def test_a_disabled_bar_is_silent(run, batch, monkeypatch, caplog):
    console = _console(monkeypatch, terminal=True)
    run.trainer.is_global_zero = False
    progress = RunProgress()
    progress.setup(run.trainer, run.module, "fit")
    progress.on_fit_start(run.trainer, run.module)
    progress.on_train_start(run.trainer, run.module)
    with caplog.at_level(logging.INFO):
        run.finish_batch(progress, batch)
    progress.teardown(run.trainer, run.module, "fit")
    assert not console.file.getvalue()
    assert not caplog.records
