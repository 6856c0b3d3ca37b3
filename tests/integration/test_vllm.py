"""The shipped command on the shipped base with the real engine: train, stop, go on, evaluate."""

from pathlib import Path

import pytest

from populora.checkpoint_io import DirectoryCheckpointIO
from populora.cli import main

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
