"""Folders for made-up benchmark files and for what graders keep."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from populora.evaluation.data import DataSource


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def source(tmp_path: Path) -> Callable[..., DataSource]:
    """Return a data source with one file of the given rows."""

    def make(name: str, *rows: Mapping[str, Any]) -> DataSource:
        (tmp_path / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return DataSource(str(tmp_path))

    return make
