import importlib
import inspect
from pathlib import Path

import pytest

from populora.cli.static import UnknownName, find_class, module_file, parameters


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package whose import would fail, with a class re-exported through two modules."""
    root = tmp_path / "sourceonly"
    (root / "inner").mkdir(parents=True)
    (root / "__init__.py").write_text("raise RuntimeError('imported')\nfrom sourceonly.inner import *\n")
    (root / "inner" / "__init__.py").write_text("from .shapes import Square as Tile, Base, Point, Free\n")
    (root / "inner" / "shapes.py").write_text(
        '''
class Base:
    """A shape.

    Args:
        size: Edge in metres.
    """
    def __init__(self, size: float, *, name: str = "x") -> None: ...
class Square(Base):
    pass
class Free(Base):
    def __init__(self, **options: int) -> None: ...
@dataclass(frozen=True)
class Point:
    x: int
    """Across."""
    y: int = 0
'''
    )
    monkeypatch.syspath_prepend(tmp_path)
    module_file.cache_clear()
    return "sourceonly"


def test_re_exports_and_bases_are_followed_without_importing(package: str) -> None:
    found = parameters(f"{package}.Tile")
    assert found is not None
    assert [(p.name, p.annotation, p.default, p.help) for p in found.values()] == [
        ("size", "float", None, "Edge in metres."),
        ("name", "str", "'x'", ""),
    ]


def test_dataclass_fields_carry_their_docstrings(package: str) -> None:
    found = parameters(f"{package}.inner.Point")
    assert found is not None
    assert [(p.name, p.default, p.help) for p in found.values()] == [("x", None, "Across."), ("y", "0", "")]


def test_arbitrary_keywords_cannot_be_known(package: str) -> None:
    assert parameters(f"{package}.Free") is None


@pytest.mark.parametrize(
    ("path", "missing", "near"),
    [
        ("sourceonly.inner.Square", "Square", "Tile"),
        ("sourceonly.outer.Tile", "outer", "inner"),
        ("nosuchpackage.Tile", "nosuchpackage", None),
    ],
)
def test_what_is_missing_is_told(package: str, path: str, missing: str, near: str | None) -> None:
    with pytest.raises(UnknownName) as error:
        find_class(path)
    assert error.value.name == missing
    assert near is None or near in error.value.defined


@pytest.mark.parametrize(
    "path",
    [
        "lightning.pytorch.Trainer",
        "lightning.pytorch.callbacks.ModelCheckpoint",
        "lightning.pytorch.callbacks.Timer",
        "lightning.pytorch.loggers.CSVLogger",
        "populora.module.PopuLoRAModule",
        "populora.datamodule.RolloutDataModule",
        "populora.callbacks.Evolution",
        "populora.callbacks.PopulationEvaluation",
        "populora.config.LearningConfig",
        "populora.config.BaseConfig",
    ],
)
def test_source_tells_what_the_interpreter_tells(path: str) -> None:
    module, _, name = path.rpartition(".")
    signature = inspect.signature(getattr(importlib.import_module(module), name))
    found = parameters(path)
    assert found is not None
    assert list(found) == list(signature.parameters)
    required = {n for n, p in signature.parameters.items() if p.default is inspect.Parameter.empty}
    assert {n for n, p in found.items() if p.default is None} == required
