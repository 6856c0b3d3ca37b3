"""A run that stops and goes on is the run that did not stop."""

import copy
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from peft import PeftModel
from transformers import AutoModelForCausalLM

from populora.cli import main
from populora.datamodule import RolloutDataModule

Run = Callable[..., dict[str, Any]]

STAGES = ("sync", "propose", "validate", "solve", "grade", "train", "save")
"""Of an iteration."""


def test_resumed_run_equals_uninterrupted_run(run: Run, checkpoints: Any, tmp_path: Path) -> None:
    whole = run("whole", 6)
    halfway = run("halves", 3)
    resumed = run("halves", 6, "--ckpt_path=last")
    assert checkpoints.differences(whole, resumed) == []
    assert checkpoints.differences(whole, halfway)
    samples = [(tmp_path / name / "samples.jsonl").read_text() for name in ("whole", "halves")]
    assert samples[0] == samples[1]


def test_run_with_more_iterations_goes_on_from_its_end(run: Run) -> None:
    run("longer", 2)
    assert run("longer", 4, "--ckpt_path=last")["populora"]["iteration"] == 4


def test_a_checkpoint_that_a_killed_run_had_no_time_to_remove_goes_on_resume(
    run: Run, tmp_path: Path
) -> None:
    saving = "{class_path: populora.callbacks.RunCheckpoint, init_args: {every: 1, keep: 1}}"
    callbacks = f"--trainer.callbacks=[populora.callbacks.RatingUpdates, {saving}]"
    older = tmp_path / "killed" / "checkpoints" / "iteration-00001.ckpt"
    run("killed", 1, callbacks)
    shutil.copytree(older, tmp_path / "aside")
    run("killed", 2, "--ckpt_path=last", callbacks)
    assert not older.exists()
    shutil.copytree(tmp_path / "aside", older)
    run("killed", 2, "--ckpt_path=last", callbacks)
    assert sorted(path.name for path in older.parent.iterdir()) == ["iteration-00002.ckpt", "last.ckpt"]


@pytest.fixture
def at_stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[str, int], None]], None]]:
    """Return a function that sets what is done when a stage of an iteration begins."""
    told = RolloutDataModule.tell

    def do(act: Callable[[str, int], None]) -> None:
        def tell(data: RolloutDataModule, stage: str, done: int, total: int) -> None:
            act(stage, data.module.iteration)
            told(data, stage, done, total)

        monkeypatch.setattr(RolloutDataModule, "tell", tell)

    yield do
    monkeypatch.undo()


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_a_run_interrupted_at_any_stage_goes_on_as_if_it_had_not_been(
    run: Run, checkpoints: Any, config: Path, tmp_path: Path, at_stage: Any, stage: str
) -> None:
    whole = run("whole", 6)

    def interrupt(reached: str, iteration: int) -> None:
        if reached == stage and iteration == (3 if stage == "save" else 4):
            raise KeyboardInterrupt

    at_stage(interrupt)
    root = f"--trainer.default_root_dir={tmp_path / 'halves'}"
    assert main(["fit", f"--config={config}", root, "--data.iterations=6"]) == 130
    saved = checkpoints.last(tmp_path / "halves")["populora"]["iteration"]
    assert saved == (3 if stage in ("train", "save") else 4)
    at_stage(lambda reached, iteration: None)
    resumed = run("halves", 6, "--ckpt_path=last")
    assert checkpoints.differences(whole, resumed) == []


def test_no_random_stream_outlives_an_iteration(run: Run, checkpoints: Any, at_stage: Any) -> None:
    """Global generators that are scrambled all the time make no difference."""
    whole = run("whole", 4)

    def scramble(stage: str, iteration: int) -> None:
        noise = int.from_bytes(os.urandom(4))
        random.seed(noise)
        np.random.seed(noise)
        torch.manual_seed(noise)

    at_stage(scramble)
    assert checkpoints.differences(whole, run("scrambled", 4)) == []


def test_each_member_of_a_checkpoint_loads_with_peft(
    run: Run, checkpoints: Any, tiny_base: Path, tmp_path: Path
) -> None:
    checkpoint = run("peft", 1)
    base = AutoModelForCausalLM.from_pretrained(tiny_base)
    for member, (_, factors) in checkpoint["adapters"].items():
        folder = tmp_path / "peft" / "checkpoints" / "last.ckpt" / "adapters" / member
        loaded = PeftModel.from_pretrained(copy.deepcopy(base), folder, adapter_name=member)
        found = {k: v for k, v in loaded.state_dict().items() if f".{member}." in k}
        expected = {k.replace(".weight", f".{member}.weight"): v for k, v in factors.items()}
        assert checkpoints.differences(found, expected) == []


def test_a_checkpoint_holds_the_config_it_was_made_with(run: Run, tmp_path: Path) -> None:
    run("config", 1)
    stored = tmp_path / "config" / "checkpoints" / "last.ckpt" / "config.yaml"
    resolved = yaml.safe_load(stored.read_text())
    assert resolved["model"]["adapter"] == {"rank": 8, "alpha": 16.0, "target_modules": "all-linear"}
    assert main(["fit", f"--config={stored}", "--dry_run"]) == 0


REFUSED = [
    ("--model.population.students=3", "student-2"),
    ("--model.population.teachers=1", "teacher-1"),
    ("--model.adapter.rank=4", "model.adapter.rank 8, this run has 4"),
    ("--model.adapter.alpha=8", "model.adapter.alpha 16.0, this run has 8.0"),
    ("--model.adapter.target_modules=[q_proj]", "differs from the bank in its modules"),
    ("--model.base.path=embedded", "model.base.path"),
]


def test_another_shape_is_refused_and_other_callbacks_are_not(
    run: Run, config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("shapes", 1)
    resume = [f"--trainer.default_root_dir={tmp_path / 'shapes'}", "--ckpt_path=last", "--data.iterations=2"]
    for override, difference in REFUSED:
        assert main(["fit", f"--config={config}", *resume, override]) == 1
        assert difference in capsys.readouterr().err
    fewer = "[populora.callbacks.RatingUpdates, populora.callbacks.RunCheckpoint]"
    assert run("shapes", 2, "--ckpt_path=last", f"--trainer.callbacks={fewer}")["populora"]["iteration"] == 2
    assert run("shapes", 3, "--ckpt_path=last")["populora"]["iteration"] == 3


def test_the_same_base_in_another_folder_is_the_same(run: Run, tiny_base: Path, tmp_path: Path) -> None:
    run("moved", 1)
    (tmp_path / "elsewhere").symlink_to(tiny_base)
    moved = run("moved", 2, "--ckpt_path=last", f"--model.base.path={tmp_path / 'elsewhere'}")
    assert moved["populora"]["iteration"] == 2


def test_a_new_run_in_a_used_folder_moves_the_old_one_aside(
    run: Run, checkpoints: Any, tmp_path: Path
) -> None:
    first = run("used", 2)
    assert run("used", 1)["populora"]["iteration"] == 1
    aside = checkpoints.last(tmp_path / "used" / "earlier-1")
    assert checkpoints.differences(first, aside) == []
