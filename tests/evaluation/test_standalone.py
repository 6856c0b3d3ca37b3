"""A model is evaluated from a call or a command, and graded again without it."""

import json
import sys
from pathlib import Path

import pytest
import torch

from populora.config import EngineConfig
from populora.errors import ConfigError
from populora.evaluation import DataSource, evaluate, regrade
from populora.evaluation.__main__ import main
from populora.evaluation.settings import EvaluationSettings
from populora.population.adapter_files import config_text, write_folder
from populora.rollouts.engine import GenerationRequest, engines
from populora.rollouts.scripted import ScriptedEngine


def knows_one_answer(request: GenerationRequest, _: int) -> str:
    return f"\\boxed{{{42 if request.member else 13}}}"


class KnowsOneAnswer(ScriptedEngine):
    """The base answers 13, any adapter 42."""

    def __init__(self, config: EngineConfig) -> None:
        super().__init__(config, knows_one_answer)


@pytest.fixture
def data(tmp_path: Path) -> DataSource:
    """Two questions of GSM8K: the answer to one is 42, to the other 7."""
    (tmp_path / "gsm8k_test.jsonl").write_text(
        '{"question": "6 * 7?", "answer": "#### 42"}\n{"question": "3 + 4?", "answer": "#### 7"}\n'
    )
    return DataSource(str(tmp_path))


@pytest.fixture
def adapter(tmp_path: Path) -> str:
    write_folder(tmp_path / "adapter", config_text(1, 1.0, [], ""), {"unused": torch.zeros(1)})
    return str(tmp_path / "adapter")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> EngineConfig:
    monkeypatch.setitem(engines._pieces, "knows", KnowsOneAnswer)
    return EngineConfig(name="knows")


def test_evaluates_a_model_and_an_adapter_and_grades_again(
    tiny_base: Path, data: DataSource, adapter: str, engine: EngineConfig, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    results = evaluate(
        str(tiny_base), ["gsm8k"], {"mine": adapter}, str(out), data=data, engine=engine,
        settings=EvaluationSettings(max_tokens=50),
    )  # fmt: skip
    assert {p: s.accuracy for p, s in results.suites[0].scores.items()} == {"base": 0.0, "mine": 0.5}
    assert json.loads((out / "results.json").read_text())["suites"][0]["scores"]["mine"]["accuracy"] == 0.5
    file = out / "responses" / "base" / "gsm8k.jsonl"
    file.write_text(file.read_text().replace("boxed{13}", "boxed{7}"))
    again = regrade(str(out), data)
    assert {p: s.accuracy for p, s in again.suites[0].scores.items()} == {"base": 0.5, "mine": 0.5}


def test_a_folder_that_is_no_adapter_is_told(
    tiny_base: Path, data: DataSource, engine: EngineConfig, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"adapter mine: expected a folder with adapter_config\.json"):
        evaluate(
            str(tiny_base),
            ["gsm8k"],
            {"mine": str(tmp_path)},
            str(tmp_path / "out"),
            data=data,
            engine=engine,
        )


def test_without_responses_there_is_nothing_to_grade(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there are no responses"):
        regrade(str(tmp_path))


def test_the_command_says_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["evaluate", "--model", "embedded", "--suites", "[gsm9k]"]
    monkeypatch.setattr(sys, "argv", ["populora.evaluation", *words])
    assert main() == 2
    assert "did you mean 'gsm8k'" in capsys.readouterr().err
