"""Where benchmarks' items come from: a local folder, or the Hugging Face hub at a pinned revision."""

import gzip
import hashlib
import json
import logging
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from populora.errors import DataError

logger = logging.getLogger(__name__)

FOLDER_VARIABLE = "POPULORA_BENCHMARKS"
"""Environment variable that names the local folder where a config does not."""

Row = Mapping[str, Any]
"""One item as its file has it; local and hub files of a benchmark may differ in their fields."""


@dataclass(frozen=True)
class DataSet:
    """One benchmark's items, as files."""

    suite: str
    """Which suite reads it, for messages."""
    file: str
    """Name in a local folder, JSON Lines; with or without ``.gz``, both are looked for."""
    sha256: str
    """Of the local file as published figures used it."""
    hub: str
    """Id of the data set on the hub."""
    revision: str
    """Commit of the hub's data set."""
    hub_files: tuple[str, ...]
    """JSON Lines or Parquet; read one after the other."""


@dataclass(frozen=True)
class Origin:
    """Which data a result rests on."""

    source: str
    """A file's path, or the hub id and revision."""
    sha256: tuple[str, ...]
    """Of each file read."""
    expected: bool
    """Whether the data are those the project names: the checksum agrees, or the hub revision is the pinned one."""


@dataclass(frozen=True)
class Rows:
    """All rows of a data set, and where they are from."""

    rows: tuple[Row, ...]
    origin: Origin


@dataclass(frozen=True)
class DataSource:
    """Where data sets are looked for: first in a local folder, then on the hub."""

    folder: str | None = None
    """Local folder; none: that of the environment variable POPULORA_BENCHMARKS, if it is set."""

    def load(self, data: DataSet) -> Rows:
        """Return all rows of a data set.

        Raises:
            DataError: it is in neither place, or damaged.
        """
        folder = self.folder or os.environ.get(FOLDER_VARIABLE)
        path = None if folder is None else _local_file(Path(folder).expanduser(), data.file)
        if path is None:
            return _from_hub(data, folder)
        content = _read(path, data)
        digest = hashlib.sha256(content).hexdigest()
        expected = path.name != data.file or digest == data.sha256
        if not expected:
            logger.warning("%s: %s is not the file that published figures rest on", data.suite, path)
        return Rows(tuple(_rows(path, content, data)), Origin(str(path), (digest,), expected))


def _local_file(folder: Path, name: str) -> Path | None:
    plain = name.removesuffix(".gz")
    return next((folder / n for n in (name, plain, f"{plain}.gz") if (folder / n).is_file()), None)


def _from_hub(data: DataSet, folder: str | None) -> Rows:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    rows: list[Row] = []
    digests = []
    for name in data.hub_files:
        try:
            path = Path(hf_hub_download(data.hub, name, repo_type="dataset", revision=data.revision))
        except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
            raise _missing(data, folder, error) from error
        content = _read(path, data)
        digests.append(hashlib.sha256(content).hexdigest())
        rows += _rows(path, content, data)
    return Rows(tuple(rows), Origin(f"{data.hub}@{data.revision}", tuple(digests), expected=True))


def _missing(data: DataSet, folder: str | None, error: Exception) -> DataError:
    where = f"there is no {data.file} in {folder}" if folder else f"{FOLDER_VARIABLE} names no local folder"
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return DataError(
        f"{data.suite}: {where}, and {', '.join(data.hub_files)} of the data set {data.hub} (revision "
        f"{data.revision}) cannot be had from the hub: {reason}. Put {data.file} into a folder and name it in "
        f"{FOLDER_VARIABLE}, or go online once"
    )


def _read(path: Path, data: DataSet) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{data.suite}: cannot read {path}: {error}") from error


def _rows(path: Path, content: bytes, data: DataSet) -> Iterator[Row]:
    try:
        yield from _parquet(path) if path.suffix == ".parquet" else _json_lines(path, content)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise DataError(
            f"{data.suite}: {path} is damaged or no file of this benchmark: {error}. Fetch it again"
        ) from error


def _json_lines(path: Path, content: bytes) -> Iterator[Row]:
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError(f"line {number} is no JSON object")
            yield row


def _parquet(path: Path) -> Iterable[Row]:
    from pyarrow import ArrowException, parquet

    try:
        rows: list[Row] = parquet.read_table(path).to_pylist()
    except ArrowException as error:
        raise ValueError(str(error)) from error
    return rows
