"""What a run finds in its folder."""

import logging
from pathlib import Path

import pytest

from populora.checkpoint_io import DirectoryCheckpointIO
from populora.cli.takeover import chosen_checkpoint, occupied, requeued, set_aside
from populora.errors import CheckpointError, ConfigError


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "checkpoints", tmp_path


def _save(path: Path, iteration: int, score: float | None = None) -> None:
    state = {"adapters": {}, "moments": {}, "populora": {"iteration": iteration}, "score": score}
    DirectoryCheckpointIO().save_checkpoint(state, path)


def test_last_is_the_newest_whole_one_wherever_it_is(
    folders: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    for iteration in (5, 10):
        _save(folders[0] / f"iteration-{iteration:05}.ckpt", iteration)
    assert chosen_checkpoint("last", folders) == str(folders[0] / "iteration-00010.ckpt")
    _save(folders[1] / "hpc_ckpt_1.ckpt", 12)
    assert chosen_checkpoint("last", folders) == str(folders[1] / "hpc_ckpt_1.ckpt")
    (folders[1] / "hpc_ckpt_1.ckpt" / "state.pt").unlink()
    with caplog.at_level(logging.WARNING):
        assert chosen_checkpoint("last", folders) == str(folders[0] / "iteration-00010.ckpt")
    assert "state.pt is missing" in caplog.text


def test_best_is_the_one_with_the_highest_score(folders: tuple[Path, Path]) -> None:
    with pytest.raises(CheckpointError, match="has a held-out score"):
        chosen_checkpoint("best", folders)
    for iteration, score in ((5, 0.5), (10, 0.75), (15, 0.25), (20, None)):
        _save(folders[0] / f"iteration-{iteration:05}.ckpt", iteration, score)
    assert chosen_checkpoint("best", folders) == str(folders[0] / "iteration-00010.ckpt")


def test_a_path_stands_for_itself_and_none_for_none(folders: tuple[Path, Path]) -> None:
    assert chosen_checkpoint("some/where.ckpt", folders) == "some/where.ckpt"
    assert chosen_checkpoint(None, folders) is None


def test_last_may_be_asked_for_before_there_is_one(
    folders: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert chosen_checkpoint("last", folders) is None
    assert "starting anew" in caplog.text


def test_an_earlier_run_is_moved_whole_and_nothing_else_is(tmp_path: Path) -> None:
    for name in ("config.yaml", "samples.jsonl", "events.out.tfevents.1", "notes.txt"):
        (tmp_path / name).write_text(name)
    _save(tmp_path / "checkpoints" / "iteration-00005.ckpt", 5)
    set_aside(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"notes.txt", "earlier-1"}
    moved = {path.name for path in (tmp_path / "earlier-1").iterdir()}
    assert moved == {"config.yaml", "samples.jsonl", "events.out.tfevents.1", "checkpoints"}
    set_aside(tmp_path)
    assert not (tmp_path / "earlier-2").exists()
    (tmp_path / "config.yaml").write_text("again")
    set_aside(tmp_path)
    assert (tmp_path / "earlier-2" / "config.yaml").read_text() == "again"


def test_two_runs_cannot_share_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    with occupied(folder), pytest.raises(ConfigError, match="another run is at work"), occupied(folder):
        pass
    with occupied(folder):
        pass


def test_a_requeued_job_is_told_by_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("SLURM_NTASKS", "1"), ("SLURM_JOB_NAME", "train"), ("SLURM_JOB_ID", "7")):
        monkeypatch.setenv(name, value)
    assert not requeued(tmp_path)
    (tmp_path / "hpc_ckpt_1.ckpt").mkdir()
    assert requeued(tmp_path)
    monkeypatch.delenv("SLURM_NTASKS")
    assert not requeued(tmp_path)
