"""The shipped command on a pre-trained model in a local folder: nothing is special to the embedded base."""

import os
from pathlib import Path

import pytest

from populora.checkpoint_io import DirectoryCheckpointIO
from populora.cli import main

CONFIG = Path(__file__).parents[2] / "configs" / "smollm2_135m.yaml"
VARIABLE = "POPULORA_SMOLLM2"


@pytest.mark.engine
@pytest.mark.slow
def test_two_iterations_on_smollm2(tmp_path: Path) -> None:
    folder = os.environ.get(VARIABLE)
    if folder is None:
        pytest.skip(f"set {VARIABLE} to a folder with SmolLM2-135M-Instruct")
    options = [
        f"--config={CONFIG}",
        f"--model.base.path={folder}",
        f"--trainer.default_root_dir={tmp_path}",
        "--data.iterations=2",
        "--data.rollout.max_proposal_tokens=160",
        "--data.rollout.max_attempt_tokens=96",
    ]
    assert main(["fit", *options]) == 0
    checkpoint = DirectoryCheckpointIO().load_checkpoint(tmp_path / "checkpoints" / "last.ckpt")
    assert checkpoint["populora"]["iteration"] == 2
    scores = next(v for k, v in checkpoint["callbacks"].items() if "PopulationEvaluation" in k)["scores"]
    assert any(s["member"] == "student-0" and s["iteration"] == 2 for s in scores)
    assert any(
        factor.any() for name, factor in checkpoint["adapters"]["student-0"].items() if "lora_B" in name
    )
