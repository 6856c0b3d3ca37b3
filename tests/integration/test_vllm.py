"""The shipped command on the shipped base with the real engine: train, stop, go on, evaluate."""

import os
from pathlib import Path

import psutil
import pytest

from populora.checkpoint_io import DirectoryCheckpointIO
from populora.cli import main
from populora.datamodule import RolloutDataModule

CONFIG = Path(__file__).parents[2] / "configs" / "quickstart.yaml"


@pytest.mark.engine
def test_quickstart_trains_resumes_and_validates(tmp_path: Path) -> None:
    options = [
        f"--config={CONFIG}",
        f"--trainer.default_root_dir={tmp_path}",
        "--model.population.teachers=1",
        "--model.population.students=2",
        "--data.rollout.attempts=4",
    ]
    assert main(["fit", *options, "--data.iterations=2"]) == 0
    assert main(["fit", *options, "--data.iterations=3", "--ckpt_path=last"]) == 0
    checkpoint = DirectoryCheckpointIO().load_checkpoint(tmp_path / "checkpoints" / "last.ckpt")
    assert checkpoint["populora"]["iteration"] == 3
    scores = next(v for k, v in checkpoint["callbacks"].items() if "PopulationEvaluation" in k)["scores"]
    base = next(s for s in scores if s["member"] is None)
    assert base["by_task"]["deduction"] > 0.3
    assert main(["validate", *options, "--ckpt_path=last"]) == 0


@pytest.mark.engine
def test_an_engine_killed_in_mid_iteration_is_restarted_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    told, killed = RolloutDataModule.tell, []

    def tell(data: RolloutDataModule, stage: str, done: int, total: int) -> None:
        if stage == "solve" and done > 0 and data.module.iteration == 1 and not killed:
            for child in psutil.Process().children():
                if "vllm_server" in " ".join(child.cmdline()):
                    child.kill()
                    killed.append(child.pid)
        told(data, stage, done, total)

    monkeypatch.setattr(RolloutDataModule, "tell", tell)
    options = [
        f"--config={CONFIG}",
        f"--trainer.default_root_dir={tmp_path}",
        "--model.population.teachers=1",
        "--model.population.students=2",
        "--data.iterations=2",
        "--trainer.callbacks=[populora.callbacks.RatingUpdates, populora.callbacks.RunCheckpoint]",
    ]
    assert main(["fit", *options]) == 0
    assert killed
    assert "Restarting the engine once" in caplog.text
    checkpoint = DirectoryCheckpointIO().load_checkpoint(tmp_path / "checkpoints" / "last.ckpt")
    assert checkpoint["populora"]["iteration"] == 2
    assert not [c for c in psutil.Process().children() if "vllm_server" in " ".join(c.cmdline())]
    assert not list(Path("/dev/shm").glob(f"populora-{os.getpid()}-*"))
