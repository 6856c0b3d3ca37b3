"""Which checkpoints are gone on from, and which are kept."""

import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from populora import checkpoints
from populora.checkpoint_io import Manifest
from populora.checkpoints import Saved, newest_whole, saved_in, superseded
from populora.errors import CheckpointError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Checkpoints whose manifest is their name's number, and damaged where the name says so."""

    def read(path: Path) -> Manifest:
        if "illegible" in path.name:
            raise CheckpointError("no manifest")
        number = int(path.stem.rpartition("-")[2])
        return Manifest(number, None, 1000.0 + number, {}, {})

    def verify(path: Path) -> Manifest:
        if "damaged" in path.name:
            raise CheckpointError(f"{path.name} is damaged")
        return read(path)

    monkeypatch.setattr(checkpoints, "read_manifest", read)
    monkeypatch.setattr(checkpoints, "verify", verify)
    return tmp_path


def test_only_folders_count_and_the_newest_comes_first(folder: Path) -> None:
    for name in ("i-5.ckpt", "i-10.ckpt", "other", ".writing-3"):
        (folder / name).mkdir()
    (folder / "file-7.ckpt").touch()
    (folder / "last.ckpt").symlink_to("i-10.ckpt")
    assert [each.path.name for each in saved_in(folder, folder)] == ["i-10.ckpt", "i-5.ckpt"]


def test_damaged_ones_are_passed_over_aloud(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("i-5.ckpt", "damaged-10.ckpt", "illegible-15.ckpt"):
        (folder / name).mkdir()
    with caplog.at_level(logging.WARNING):
        found = newest_whole(saved_in(folder))
    assert found is not None
    assert found.path.name == "i-5.ckpt"
    assert "damaged-10.ckpt is damaged" in caplog.text
    assert "no manifest" in caplog.text


def test_none_and_none_whole_differ(folder: Path) -> None:
    assert newest_whole(saved_in(folder)) is None
    (folder / "damaged-10.ckpt").mkdir()
    with pytest.raises(CheckpointError, match="none of the 1 checkpoints"):
        newest_whole(saved_in(folder))


def _saved(*iterations: int, scores: dict[int, float] | None = None) -> list[Saved]:
    """Checkpoints in the order of writing, returned newest first."""
    made = [
        Saved(Path(f"{time}-{i}"), float(time), i, (scores or {}).get(i)) for time, i in enumerate(iterations)
    ]
    return made[::-1]


def _kept(saved: list[Saved], began: int, own: int, keep: int, best: int) -> list[int | None]:
    """Iterations kept when the newest ``own`` are the run's own."""
    gone = superseded(saved, began, {each.path for each in saved[:own]}, keep, best)
    return [each.iteration for each in saved if each not in gone]


def test_the_newest_and_the_best_are_kept() -> None:
    saved = _saved(5, 10, 15, 20, 25, scores={10: 0.9, 20: 0.4})
    assert _kept(saved, 0, 5, keep=2, best=1) == [25, 20, 10]
    assert _kept(saved, 0, 5, keep=1, best=2) == [25, 20, 10]
    assert _kept(saved, 0, 5, keep=1, best=0) == [25]


def test_a_future_that_is_no_more_goes_once_there_is_a_new_one() -> None:
    """Gone on from 5, although 10 and 15 had been written; then 8 and 10 anew."""
    saved = _saved(5, 10, 15, 8, 10)
    assert _kept(saved, 5, 2, keep=3, best=0) == [10, 8, 5]
    assert [e.iteration for e in superseded(saved, 5, {e.path for e in saved[:2]}, 3, 0)] == [15, 10]


def test_the_same_iteration_written_again_takes_the_others_place() -> None:
    saved = _saved(5, 10, 10, scores={10: 0.5})
    assert [each.path.name for each in superseded(saved, 0, {e.path for e in saved}, 2, 1)] == ["1-10"]


def test_what_cannot_be_read_is_left_alone() -> None:
    illegible = Saved(Path("x"), 99.0, None, None)
    assert illegible not in superseded([illegible, *_saved(5, 10)], 0, set(), 1, 0)


@given(
    st.lists(st.tuples(st.integers(0, 30), st.none() | st.floats(0, 1)), min_size=1, max_size=12),
    st.integers(0, 30),
    st.integers(1, 12),
    st.integers(1, 4),
    st.integers(0, 3),
)
def test_the_newest_own_is_never_removed_and_few_remain(
    written: list[tuple[int, float | None]], began: int, own: int, keep: int, best: int
) -> None:
    saved = [Saved(Path(f"{t}"), float(t), i, score) for t, (i, score) in enumerate(written)][::-1]
    gone = superseded(saved, began, {each.path for each in saved[:own]}, keep, best)
    assert saved[0] not in gone
    assert len(saved) - len(gone) <= keep + best
    assert len({each.iteration for each in saved if each not in gone}) == len(saved) - len(gone)
