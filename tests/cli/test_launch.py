import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from populora.cli import main
from populora.cli.arguments import read_command
from populora.cli.launch import PopuLoRACLI, launch, lightning_arguments


@pytest.fixture(autouse=True)
def nothing_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Build everything, but do not train; leave logging as it was."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(PopuLoRACLI, "_run_subcommand", lambda self, subcommand: None)
    names = ("", "populora", "lightning.pytorch", "lightning.fabric")
    levels = {name: logging.getLogger(name).level for name in names}
    handlers = list(logging.root.handlers)
    yield
    logging.root.handlers[:] = handlers
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def test_lightning_gets_configs_before_overrides_and_safe_loading_first() -> None:
    command = read_command(["--model.adapter.rank", "8", "--config", "a.yaml", "validate", "--x", "[1, 2]"])
    assert lightning_arguments(command) == [
        "validate",
        "--weights_only=true",
        "--config=a.yaml",
        "--model.adapter.rank=8",
        "--x=[1, 2]",
    ]


def test_settings_arrive_where_they_belong() -> None:
    words = ["--model.adapter.rank", "8", "--data.iterations", "3", "--trainer.default_root_dir", "out"]
    callbacks = ["--trainer.callbacks", "[{class_path: Evolution, init_args: {interval: 4}}, GracefulStop]"]
    cli = launch(read_command(["fit", *words, *callbacks]))
    assert cli.model.adapter.rank == 8
    assert cli.datamodule.iterations == 3
    assert Path(cli.trainer.log_dir) == Path("out")
    assert {"Evolution", "GracefulStop"} <= {type(callback).__name__ for callback in cli.trainer.callbacks}
    assert type(cli.trainer.strategy.checkpoint_io).__name__ == "DirectoryCheckpointIO"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--trainer.max_epochs", "abc"], "max_epochs"),
        (["--trainer.accelerator", "abacus"], "abacus"),
        (["--data.rollout.tasks", "[dedution]"], "did you mean 'deduction'?"),
        (["--trainer.callbacks", "[{class_path: Evolution, init_args: {interval: 0}}]"], "interval"),
    ],
)
def test_what_only_lightning_can_tell_is_one_message_too(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
