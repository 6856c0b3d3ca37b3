"""What is in the tree is in the wheel, and works from there."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TREES = {"populora": "src/populora", "populora/callbacks": "callbacks", "populora/evaluation": "evaluation"}
PARTS = (
    *("src", "callbacks", "evaluation", "configs", "tests", "scripts"),
    *("pyproject.toml", "MANIFEST.in"),
)
JUNK = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*_cache")


def normalised(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def test_every_import_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    declared = {
        normalised(re.split(r"[<>=\[ ;]", requirement)[0])
        for requirements in (project["dependencies"], *extras)
        for requirement in requirements
    }
    distributions = packages_distributions()
    undeclared = {
        f"{file}: {module}"
        for file in (file for tree in TREES.values() for file in (ROOT / tree).rglob("*.py"))
        for module in imported_modules(file)
        if module not in sys.stdlib_module_names
        and module != "populora"
        and not {normalised(name) for name in distributions.get(module, [module])} & declared
    }
    assert not undeclared


def imported_modules(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout, for a build leaves files behind."""
    source = tmp_path_factory.mktemp("source")
    for part in (*PARTS, "README.md", "LICENSE"):
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, source / part, symlinks=True, ignore=JUNK)
        else:
            shutil.copy(ROOT / part, source)
    return source


@pytest.fixture(scope="module")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


def test_wheel_holds_exactly_the_trees(source: Path, wheel: Path) -> None:
    expected = set()
    for package, tree in TREES.items():
        for folder, _, files in os.walk(source / tree):  # does not enter the links to the other two trees
            inside = Path(package) / Path(folder).relative_to(source / tree)
            expected |= {str(inside / file) for file in files}
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == expected


def test_sdist_holds_what_developers_need(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"configs/quickstart.yaml", "tests/test_packaging.py", "scripts/setup", "LICENSE"} <= names
    assert "src/populora/callbacks/__init__.py" in names


def test_the_unpacked_wheel_works_without_the_checkout(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = (
        "import populora, sys; from importlib.util import find_spec;"
        "from populora.cli import main; from populora.embedded import model_path;"
        "sys.stdout.write(f'{populora.__file__}\\n{find_spec(\"populora.callbacks\").origin}\\n{model_path()}\\n');"
        "sys.exit(main(['fit', '--help']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    package, callbacks, model = done.stdout.splitlines()[:3]
    assert package == str(tmp_path / "populora" / "__init__.py")
    assert callbacks == str(tmp_path / "populora" / "callbacks" / "__init__.py")
    assert model == str(tmp_path / "populora" / "embedded" / "model")
    assert "--model.adapter.rank" in done.stdout
