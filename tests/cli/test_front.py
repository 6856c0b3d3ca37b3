import json
import subprocess
import sys
from pathlib import Path

import pytest

from populora.cli import main

HEAVY = ("torch", "lightning", "vllm", "transformers", "peft")


def run_fresh(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command in a fresh interpreter that reports on standard error what it has imported."""
    code = (
        "import sys; from populora.cli import main; code = main(sys.argv[1:]);"
        f"heavy = [name for name in {HEAVY} if name in sys.modules];"
        "sys.stderr.write(f'heavy={heavy}'); sys.exit(code)"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *words], check=False, cwd=cwd, capture_output=True, text=True
    )


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "base"
    folder.mkdir()
    shape = {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "vocab_size": 259,
        "tie_word_embeddings": True,
    }
    (folder / "config.json").write_text(json.dumps(shape))
    return folder


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--help"], 0, "populora fit --help lists every setting"),
        (["fit", "--help"], 0, "--model.learning.learning_rate (default: 2e-05)"),
        (["fit", "--print_config"], 0, "learning_rate: 2.0e-05"),
        (["fit", "--config", "none.yaml"], 2, "none.yaml: no such config"),
        (["fit", "--model.learning.lr", "1"], 2, "unknown key model.learning.lr"),
        (["fit", "--dry_run", "--model.base.path", "base"], 0, "nothing is loaded"),
        (["--config=run.yaml", "fit", "--dry_run"], 0, "nothing is loaded"),
        (["fit", "--model.base.path", "/no/such/base"], 2, "there is no folder /no/such/base"),
        ([], 2, "expected a command, fit or validate"),
    ],
)
def test_answers_come_before_anything_heavy_is_imported(
    tmp_path: Path, base: Path, words: list[str], code: int, said: str
) -> None:
    (tmp_path / "run.yaml").write_text(f"model: {{base: {{path: {base}}}}}\n")
    done = run_fresh(*words, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.endswith("heavy=[]")


def test_help_lists_every_setting_with_its_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "--help"]) == 0
    text = capsys.readouterr().out
    assert "--trainer.max_epochs (default: 1)" in text
    assert "--data.iterations (default: 100)\n      Length of the run." in text
    assert "Rank r of the update" in text
    assert "--ckpt_path (default: None)" in text


def test_each_mistake_is_one_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "--model.adapter.rank", "0", "--data.iteration", "3"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        "populora: command line: unknown key data.iteration; did you mean iterations?",
        "populora: command line: model.adapter.rank must be in 1 … 512, got 0",
    ]


def test_a_dry_run_tells_sizes_and_writes_nothing(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "150")
    before = sorted(tmp_path.rglob("*"))
    words = ["--model.base.path", str(base), "--model.adapter.rank", "4", "--trainer.accelerator", "cpu"]
    assert main(["fit", "--dry_run", *words, "--trainer.default_root_dir", "out"]) == 0
    text = capsys.readouterr().out
    adapter = 4 * 2 * (4 * (64 + 64) + 3 * (64 + 128))  # rank, layers, attention, feed-forward
    assert f"{adapter:,} parameters" in text
    assert "48 an iteration" in text  # 4 matches, 3 tasks, 4 samples
    assert "384 an iteration" in text
    assert "out" in text
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("no/such/folder", "there is no folder no/such/folder"),
        ("someone/some-model", "`hf download someone/some-model config.json` is enough"),
        (".", "has no config.json"),
    ],
)
def test_a_missing_base_is_named_with_the_remedy(
    tmp_path: Path, path: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "--dry_run", "--model.base.path", path]) == 2
    assert said in capsys.readouterr().err
