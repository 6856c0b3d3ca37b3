"""Items come from a folder or the hub, and what is missing or damaged is said in full."""

import gzip
import hashlib
import json
import logging
from pathlib import Path

import pytest
from pyarrow import Table, parquet

from populora.errors import DataError
from populora.evaluation.data import FOLDER_VARIABLE, DataSet, DataSource

ROWS = [{"question": "1 + 1?", "answer": "2"}, {"question": "line\u2028separator", "answer": "3"}]
TEXT = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS).encode()
DATA = DataSet(
    suite="sums",
    file="sums.jsonl.gz",
    sha256="expected",
    hub="someone/sums",
    revision="4f" * 20,
    hub_files=("a.jsonl", "b.parquet"),
)


@pytest.fixture(autouse=True)
def _no_default_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)


def no_hub(*_: object, **__: object) -> str:
    raise OSError("Name or service not known")


def test_reads_a_compressed_file(tmp_path: Path) -> None:
    content = gzip.compress(TEXT)
    (tmp_path / DATA.file).write_bytes(content)
    loaded = DataSource(str(tmp_path)).load(DATA)
    assert list(loaded.rows) == ROWS
    assert loaded.origin.sha256 == (hashlib.sha256(content).hexdigest(),)


def test_reads_an_uncompressed_file_of_the_folder_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sums.jsonl").write_bytes(TEXT)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    assert list(DataSource().load(DATA).rows) == ROWS


def test_says_when_a_file_is_another_than_expected(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / DATA.file).write_bytes(gzip.compress(TEXT))
    with caplog.at_level(logging.WARNING):
        assert not DataSource(str(tmp_path)).load(DATA).origin.expected
    assert "sums" in caplog.text


def test_reads_json_lines_and_parquet_from_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    (tmp_path / "a.jsonl").write_bytes(TEXT)
    parquet.write_table(Table.from_pylist([{"question": "2 + 2?", "answer": "4"}]), tmp_path / "b.parquet")

    def download(hub: str, name: str, *, repo_type: str, revision: str) -> str:
        asked.append((hub, repo_type, revision))
        return str(tmp_path / name)

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    loaded = DataSource(str(tmp_path / "empty")).load(DATA)
    assert list(loaded.rows) == [*ROWS, {"question": "2 + 2?", "answer": "4"}]
    assert asked == [("someone/sums", "dataset", "4f" * 20)] * 2
    assert loaded.origin.expected
    assert len(loaded.origin.sha256) == 2


def test_missing_data_are_named_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.hf_hub_download", no_hub)
    with pytest.raises(DataError) as raised:
        DataSource(str(tmp_path)).load(DATA)
    for part in (
        "sums",
        "sums.jsonl.gz",
        str(tmp_path),
        "someone/sums",
        "a.jsonl",
        "Name or service not known",
    ):
        assert part in str(raised.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("sums.jsonl.gz", gzip.compress(TEXT)[:-12]),
        ("sums.jsonl.gz", TEXT),
        ("sums.jsonl", b'{"question": '),
        ("sums.jsonl", b"[1, 2]\n"),
        ("sums.jsonl", b"\xff\xfe\n"),
    ],
)
def test_damaged_files_are_told(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"sums: .*{name} is damaged"):
        DataSource(str(tmp_path)).load(DATA)
