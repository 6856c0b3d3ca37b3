"""Every config that ships is right, says how to use it, and means the same to LightningCLI."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from populora.cli.arguments import Command, read_command
from populora.cli.settings import dump, resolve

ROOT = Path(__file__).parents[1]
CONFIGS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "configs").rglob("*.yaml"))
EVALUATIONS = [name for name in CONFIGS if "/evaluation/" in name]
OVERLAYS = [name for name in CONFIGS if "/debug/" in name] + EVALUATIONS


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def command_of(name: str) -> Command:
    below = ["--config", "configs/quickstart.yaml"] if name in OVERLAYS else []
    return read_command(["fit", *below, "--config", name])


@pytest.mark.parametrize("name", CONFIGS)
def test_header_says_hardware_and_commands_that_work(name: str) -> None:
    header = Path(name).read_text().split("\n\n")[0]
    assert all(line.startswith("#") for line in header.splitlines())
    assert re.search(r"^# Hardware: .+$", header, re.MULTILINE)
    commands = re.findall(r"populora ((?:fit|validate) .*)$", header, re.MULTILINE)
    assert len(commands) == 2, "the command as it is, and one override"
    for words in commands:
        assert name in words
        resolve(read_command(words.split()))


@pytest.mark.parametrize("name", [name for name in CONFIGS if name not in EVALUATIONS])
def test_runs_do_not_share_a_folder(name: str) -> None:
    root = resolve(command_of(name))["trainer.default_root_dir"]
    assert root == f"runs/{name.removeprefix('configs/').removesuffix('.yaml').replace('/', '_')}"


@pytest.mark.parametrize(
    ("population", "agent"),
    [("quickstart", "single_agent"), ("qwen2.5_coder_7b", "qwen2.5_coder_7b_single_agent")],
)
def test_the_baseline_differs_only_in_who_plays(population: str, agent: str) -> None:
    many, one = (yaml.safe_load(Path(f"configs/{name}.yaml").read_text()) for name in (population, agent))
    assert one["model"].pop("population") == {"teachers": 1, "students": 1, "shared": True}
    assert many["model"].pop("population") == {"teachers": 4, "students": 4}
    assert one["trainer"].pop("default_root_dir") != many["trainer"].pop("default_root_dir")
    assert one == many


@pytest.fixture(scope="module")
def parser() -> Any:
    """LightningCLI's own parser; making it takes seconds."""
    from populora.cli.launch import PopuLoRACLI, launch

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PopuLoRACLI, "instantiate_classes", lambda self: None)
        patch.setattr(PopuLoRACLI, "_run_subcommand", lambda self, subcommand: None)
        return launch(read_command(["fit"])).parser


@pytest.mark.parametrize("name", CONFIGS)
def test_lightning_reads_the_same_settings(name: str, parser: Any) -> None:
    from populora.cli.launch import lightning_arguments

    command = command_of(name)
    parsed = parser.parse_args(lightning_arguments(command))
    read = yaml.safe_load(parser.dump(parsed, skip_none=False))["fit"]
    checked = yaml.safe_load(dump(resolve(command)))
    for part in ("seed_everything", "weights_only", "model", "data"):
        assert read[part] == checked[part]
    read["trainer"].pop("callbacks")
    checked["trainer"].pop("callbacks")
    assert read["trainer"] == checked["trainer"]
