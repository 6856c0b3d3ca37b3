"""Suites in a run: who answers when, what is logged, and what is refused at once."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from populora.base import load_tokenizer
from populora.callbacks import SuiteEvaluation
from populora.config import EngineConfig
from populora.datamodule import LongResponses
from populora.errors import ConfigError, DataError
from populora.evaluation.suite import suites
from populora.population.adapter_files import config_text, write_folder
from populora.rollouts.engine import EngineBase, GenerationRequest, LoadedAdapter
from populora.rollouts.scripted import ScriptedEngine


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Folder with two questions of GSM8K."""
    (tmp_path / "gsm8k_test.jsonl").write_text(
        '{"question": "6 * 7?", "answer": "#### 42"}\n{"question": "6 + 7?", "answer": "#### 13"}\n'
    )
    return str(tmp_path)


@pytest.fixture
def asked(run: Any, tiny_base: Path, tmp_path: Path) -> Iterator[list[str | None]]:
    """Gives the run an engine in which students know everything and the base knows one answer; who was asked."""
    members: list[str | None] = []

    def script(request: GenerationRequest, _: int) -> str:
        members.append(request.member)
        product = "*" in tokenizer.decode(request.prompt_ids)
        return "\\boxed{42}" if product else ("\\boxed{13}" if request.member else "no idea")

    tokenizer = load_tokenizer(tiny_base)
    engine = ScriptedEngine(EngineConfig(name="scripted"), script)
    engine.start(EngineBase(tiny_base, torch.float32, 1, 2, 800))
    run.versions = dict.fromkeys((m.name for m in run.population.members), 0)

    def synchronise() -> None:
        for name, version in run.versions.items():
            write_folder(tmp_path / name, config_text(1, 1.0, [], ""), {"unused": torch.zeros(1)})
            engine.load(LoadedAdapter(name, version, tmp_path / name, f"{name}-{version}"))

    run.trainer.datamodule.engine = engine
    run.trainer.datamodule.synchronise = synchronise
    run.trainer.datamodule.tell = lambda *_: None
    run.module.tokenizer = tokenizer
    run.module.prompts = SimpleNamespace(chat=True)
    run.module.base = SimpleNamespace(path="tiny")
    run.module.base_folder = tiny_base
    yield members
    engine.close()


def validate(callback: SuiteEvaluation, run: Any) -> None:
    run.trainer.validating = True
    callback.on_validation_end(run.trainer, run.module)


def test_validate_scores_the_base_and_all_students(run: Any, asked: list[str | None], folder: str) -> None:
    callback = SuiteEvaluation(["gsm8k"], data=folder)
    validate(callback, run)
    assert callback.results is not None
    scores = callback.results.suites[0].scores
    assert {player: score.accuracy for player, score in scores.items()} == {
        "base": 0.5, "student-0": 1.0, "student-1": 1.0,
    }  # fmt: skip
    assert run.scalars["suites/gsm8k/base", run.module.iteration] == 0.5
    assert run.scalars["suites/gsm8k/population_mean", run.module.iteration] == 1.0
    assert sorted(map(str, asked)) == ["None"] * 2 + ["student-0"] * 2 + ["student-1"] * 2


def test_later_evaluations_ask_only_who_changed(run: Any, asked: list[str | None], folder: str) -> None:
    callback = SuiteEvaluation(["gsm8k"], data=folder)
    validate(callback, run)
    validate(callback, run)
    assert len(asked) == 6
    asked.clear()
    run.module.iteration += 1
    run.versions["student-1"] = 1
    validate(callback, run)
    assert None not in asked
    assert "student-1" in asked


def test_teachers_answer_when_asked_for(run: Any, asked: list[str | None], folder: str) -> None:
    validate(SuiteEvaluation(["gsm8k"], data=folder, members="all", limit=1), run)
    assert set(asked) == {None, *(member.name for member in run.population.members)}


@pytest.mark.parametrize(("every", "evaluated"), [(None, []), (2, [2, 4, 5]), (5, [5])])
def test_fit_evaluates_every_so_often_and_at_the_end(
    run: Any, folder: str, every: int | None, evaluated: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    monkeypatch.setattr(
        SuiteEvaluation, "_evaluate", lambda self, trainer: found.append(run.module.iteration)
    )
    callback = SuiteEvaluation(["gsm8k"], every=every, data=folder)
    run.trainer.validating = False
    for iteration in range(5):
        run.module.iteration = iteration + 1
        callback.on_train_batch_end(
            run.trainer, run.module, None, SimpleNamespace(iteration=iteration), iteration
        )
        callback.on_validation_end(run.trainer, run.module)
    callback.on_train_end(run.trainer, run.module)
    assert found == evaluated


def test_the_engine_is_told_how_long_responses_get(folder: str) -> None:
    callback = SuiteEvaluation(["gsm8k"], data=folder)
    assert isinstance(callback, LongResponses)
    assert callback.longest_response == suites["gsm8k"].decoding.max_tokens
    assert SuiteEvaluation(["gsm8k"], data=folder, max_tokens=64).longest_response == 64


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"suites": ["gsm8kk"]}, "did you mean 'gsm8k'"),
        ({"suites": []}, "name at least one suite"),
        ({"suites": ["gsm8k"], "every": 0}, r"every=0"),
        ({"suites": ["gsm8k"], "limit": 0}, "limit must be at least 1"),
        ({"suites": ["gsm8k"], "members": "both"}, "'students' or 'all'"),
        ({"suites": ["gsm8k"], "samples": 4}, "temperature 0 are all the same"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str, folder: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SuiteEvaluation(data=folder, **arguments)


def test_missing_data_end_the_run_or_are_left_out(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_hub(*_: object, **__: object) -> str:
        raise OSError("offline")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", no_hub)
    with pytest.raises(DataError, match=r"aime24: there is no aime24\.jsonl"):
        SuiteEvaluation(["aime24", "gsm8k"], data=folder)
    callback = SuiteEvaluation(["aime24", "gsm8k"], data=folder, skip_missing=True)
    assert [suite.name for suite in callback._suites] == ["gsm8k"]
    assert "aime24" in callback._missing[0]
    with pytest.raises(DataError, match="no suite's data"):
        SuiteEvaluation(["aime24"], data=folder, skip_missing=True)
