"""What is printed at the end."""

import io
from pathlib import Path

import pytest
import rich
from rich.console import Console

from populora.callbacks import CompletionSamples, PopulationEvaluation, RunCheckpoint, RunSummary
from populora.callbacks.held_out import Scores
from populora.population.members import LineageRecord


@pytest.fixture
def console(monkeypatch):
    console = Console(file=io.StringIO(), force_terminal=False, width=80)
    monkeypatch.setattr(rich, "get_console", lambda: console)
    return console


@pytest.fixture
def evaluation(tmp_path):
    file = tmp_path / "problems.jsonl"
    line = '{"task": "deduction", "program": "def f(x):\\n    return x", "inputs": ["1"], "outputs": ["1"]}\n'
    file.write_text(line * 50)
    callback = PopulationEvaluation(problems=str(file), tasks=["deduction"], count=50, attempts=2)
    callback.scores = [
        Scores(iteration, member, 0, {"deduction": share, "abduction": share + 0.2, "induction": share + 0.1}, {})
        for iteration, member, share in [
            (0, None, 0.1), (0, "student-0", 0.1), (0, "student-1", 0.1), (8, "student-0", 0.4), (8, "student-1", 0.2),
        ]
    ]  # fmt: skip
    return callback


def _rows(text):
    return {cells[0]: cells[1:] for line in text.splitlines() if (cells := line.split())}


def test_members_with_scores_against_the_base(run, console, evaluation):
    run.trainer.callbacks = [evaluation, summary := RunSummary()]
    run.module.iteration = 8
    summary.teardown(run.trainer, run.module, "fit")
    text = console.file.getvalue()
    rows = _rows(text)
    assert "Population after 8 iterations" in text
    assert rows["base"] == ["10.0", "30.0", "20.0", "20.0"]
    assert rows["student-0"] == ["0", "25.0", "±", "8.3", "40.0", "60.0", "50.0", "50.0", "+30.0"]
    assert rows["student-1"] == ["0", "25.0", "±", "8.3", "20.0", "40.0", "30.0", "30.0", "+10.0"]
    assert rows["teacher-0"] == ["0", "25.0", "±", "8.3", "–", "–", "–", "–", "–"]
    assert (
        "Held-out accuracy before 20.0% (base), after 40.0% (mean of 2 students), 30.0% (weakest, student-1), "
        "50.0% (best, student-0)." in text
    )
    assert "One score is over 100 answers, standard error about 4.9%" in text
    assert "…" not in text


def test_a_child_not_yet_evaluated_has_no_score(run, console, evaluation):
    run.trainer.callbacks = [evaluation, summary := RunSummary()]
    run.population.replace(
        LineageRecord(9, "student-0", "copy_parent", (), ("student-1",), (0,), 1, generation=1)
    )
    summary.teardown(run.trainer, run.module, "fit")
    text = console.file.getvalue()
    assert _rows(text)["student-0"] == ["1", "25.0", "±", "8.3", "–", "–", "–", "–", "–"]
    assert "after 30.0% (mean of 1 students)" in text


def test_without_evaluation_the_ratings_remain(run, console):
    run.trainer.callbacks = [summary := RunSummary()]
    summary.teardown(run.trainer, run.module, "fit")
    assert _rows(console.file.getvalue())["student-0"] == ["0", "25.0", "±", "8.3"]


def test_places(run, console, tmp_path):
    samples, checkpoint = CompletionSamples(), RunCheckpoint(folder=str(tmp_path / "checkpoints"))
    samples.path = tmp_path / "samples.jsonl"
    samples.path.touch()
    run.trainer.callbacks = [samples, checkpoint, summary := RunSummary()]
    summary.teardown(run.trainer, run.module, "fit")
    lines = console.file.getvalue().splitlines()
    assert f"checkpoints  {tmp_path / 'checkpoints'}" in lines
    assert f"samples      {tmp_path / 'samples.jsonl'}" in lines
    assert f"             to look at it: tensorboard --logdir {Path(run.tensorboard.log_dir)}" in lines


def test_only_an_interrupt_prints_a_summary(run, console):
    summary = RunSummary()
    summary.on_exception(run.trainer, run.module, RuntimeError("engine died"))
    assert not console.file.getvalue()
    summary.on_exception(run.trainer, run.module, KeyboardInterrupt())
    assert "student-0" in console.file.getvalue()
