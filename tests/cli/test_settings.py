from pathlib import Path

import pytest
import yaml

from populora.cli.arguments import read_command
from populora.cli.schema import TRAINER_DEFAULTS, options
from populora.cli.settings import Settings, dump, resolve
from populora.config import AdapterConfig, BaseConfig, LearningConfig, PopulationConfig, RolloutConfig
from populora.errors import ConfigError


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def resolved(*words: str) -> Settings:
    return resolve(read_command(["fit", *words]))


def mistakes(*words: str) -> list[str]:
    with pytest.raises(ConfigError) as error:
        resolved(*words)
    return str(error.value).splitlines()


def test_later_configs_and_the_command_line_win(here: Path) -> None:
    (here / "a.yaml").write_text("model: {adapter: {rank: 8, alpha: 9}}\ndata: {iterations: 5}\n")
    (here / "b.yaml").write_text("model: {adapter: {rank: 12}}\n")
    settings = resolved("--config", "a.yaml", "--config", "b.yaml", "--data.iterations", "7")
    assert settings.section(AdapterConfig) == AdapterConfig(rank=12, alpha=9.0)
    assert settings["data.iterations"] == 7
    assert settings["model.adapter.rank"] == 12


def test_without_settings_the_defaults_hold() -> None:
    settings = resolved()
    assert settings.section(PopulationConfig) == PopulationConfig()
    assert settings.section(RolloutConfig) == RolloutConfig()
    assert settings["data.iterations"] == 100
    assert settings["trainer.max_epochs"] == TRAINER_DEFAULTS["max_epochs"]


def test_values_take_the_type_of_their_field() -> None:
    settings = resolved(
        *("--model.learning.learning_rate", "1e-3"),
        *("--model.learning.betas", "[0.8, 0.9]"),
        *("--model.base.revision", "123"),
        *("--model.adapter.target_modules", "[q_proj, v_proj]"),
        *("--data.engine.max_model_len", "null"),
        *("--data.rollout.tasks+", "mine"),
    )
    learning = settings.section(LearningConfig)
    assert (learning.learning_rate, learning.betas) == (0.001, (0.8, 0.9))
    assert settings.section(BaseConfig).revision == "123"
    assert settings.section(AdapterConfig).target_modules == ["q_proj", "v_proj"]
    assert settings["data.engine.max_model_len"] is None
    assert settings.section(RolloutConfig).tasks == ["deduction", "abduction", "induction", "mine"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            "model: {learning: {lerning_rate: 1}}",
            "a.yaml: unknown key model.learning.lerning_rate; did you mean learning_rate?",
        ),
        ("modle: {}", "a.yaml: unknown key modle; did you mean model?"),
        ("learning_rate: 1", "a.yaml: unknown key learning_rate; did you mean model.learning.learning_rate?"),
        ("trainer: {max_epoch: 2}", "a.yaml: unknown key trainer.max_epoch; did you mean max_epochs?"),
        (
            "model: {population: {zebras: 1}}",
            "a.yaml: unknown key model.population.zebras; model.population has teachers, students, shared",
        ),
        ("model: {population: {teachers: 0}}", "a.yaml: model.population.teachers must be at least 1, got 0"),
        ("model: {learning: {clip_low: high}}", "a.yaml: model.learning.clip_low must be float, got 'high'"),
        ("data: {rollout: {attempts: null}}", "a.yaml: data.rollout.attempts must be int, got None"),
        ("model: {adapter: 8}", "a.yaml: model.adapter must be a mapping of settings, got 8"),
        ("model: {adapter: {rank: 0}}", "a.yaml: model.adapter.rank must be in 1 … 512, got 0"),
        ("[1, 2]", "a.yaml: expected a mapping with model, data and trainer, got [1, 2]"),
    ],
)
def test_mistakes_name_file_key_and_remedy(here: Path, content: str, expected: str) -> None:
    (here / "a.yaml").write_text(content)
    assert mistakes("--config", "a.yaml") == [expected]


def test_all_mistakes_are_told_at_once_and_where_each_stands(here: Path) -> None:
    (here / "a.yaml").write_text("data: {iteration: 3}\nmodel: {population: {shared: true}}\n")
    told = mistakes("--config", "a.yaml", "--model.adapter.rnak", "3")
    assert told[0] == "a.yaml: unknown key data.iteration; did you mean iterations?"
    assert told[1] == "command line: unknown key model.adapter.rnak; did you mean rank?"
    assert told[2].startswith("a.yaml: model.population.shared needs teachers: 1")
    assert len(told) == 3


def test_a_contradiction_made_on_the_command_line_is_told_of_it(here: Path) -> None:
    (here / "a.yaml").write_text("model: {population: {teachers: 2}}\n")
    (told,) = mistakes("--config", "a.yaml", "--model.population.shared", "true")
    assert told.startswith("command line: model.population.shared")


def test_broken_yaml_is_told_with_its_line(here: Path) -> None:
    (here / "a.yaml").write_text("model:\n  base: [\n")
    (told,) = mistakes("--config", "a.yaml")
    assert told.startswith("a.yaml: not readable as YAML")
    assert "line 3" in told


def test_a_missing_config_names_the_nearest(here: Path) -> None:
    (here / "configs").mkdir()
    (here / "configs" / "quickstart.yaml").touch()
    assert mistakes("--config", "configs/quikstart.yaml") == [
        "configs/quikstart.yaml: no such config; did you mean configs/quickstart.yaml?"
    ]


CALLBACKS = "trainer:\n  callbacks:\n"


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (
            "{class_path: populora.callbacks.Evolution, init_args: {intervall: 3}}",
            "unknown argument intervall of populora.callbacks.Evolution; did you mean interval?",
        ),
        ("populora.callbacks.Evolutoin", "no class populora.callbacks.Evolutoin; did you mean Evolution?"),
        ("populora.callback.Evolution", "no class populora.callback.Evolution; did you mean callbacks?"),
        ("ModelCheckpiont", "no class ModelCheckpiont; did you mean ModelCheckpoint?"),
        (
            "{class_path: Timer, init_arg: {}}",
            "unknown key init_arg beside class_path Timer; did you mean init_args?",
        ),
        (
            "lightning.pytorch.callbacks.EarlyStopping",
            "lightning.pytorch.callbacks.EarlyStopping needs the argument monitor: str",
        ),
        (
            "7",
            "each entry of trainer.callbacks must be a class_path, with init_args where it needs some, got 7",
        ),
    ],
)
def test_callbacks_are_checked_by_their_source(here: Path, entry: str, expected: str) -> None:
    (here / "a.yaml").write_text(f"{CALLBACKS}    - {entry}\n")
    assert mistakes("--config", "a.yaml") == [f"a.yaml: {expected}"]


def test_right_callbacks_and_loggers_pass(here: Path) -> None:
    (here / "a.yaml").write_text(
        f"{CALLBACKS}    - Evolution\n    - class_path: Timer\n      init_args: {{duration: '00:01:00:00'}}\n"
        "  logger: {class_path: lightning.pytorch.loggers.CSVLogger, init_args: {save_dir: x}}\n"
    )
    settings = resolved("--config", "a.yaml", "--trainer.callbacks.init_args.interval", "seconds")
    assert settings["trainer.callbacks"][0] == "Evolution"


def test_the_printed_config_is_complete_and_gives_the_same_settings(here: Path) -> None:
    first = resolved(
        "--model.adapter.rank", "8", "--trainer.callbacks", "[Evolution]", "--data.iterations", "3"
    )
    (here / "printed.yaml").write_text(dump(first))
    second = resolved("--config", "printed.yaml")
    assert {key: second[key] for key in options("fit")} == {key: first[key] for key in options("fit")}
    assert second.given.keys() == options("fit").keys()
    assert yaml.safe_load(dump(second))["model"]["adapter"]["rank"] == 8
