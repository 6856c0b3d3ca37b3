"""Players answer suites through an engine, and what they answered is not asked again."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.evaluation.conftest import Sums

from populora.base import load_tokenizer
from populora.config import EngineConfig
from populora.errors import ConfigError, EngineError
from populora.evaluation.evaluator import Evaluator, Player, response_file
from populora.evaluation.responses import ResponseFile
from populora.evaluation.settings import EvaluationSettings
from populora.population.adapter_files import config_text, write_folder
from populora.rollouts.engine import EngineBase, GenerationRequest, LoadedAdapter
from populora.rollouts.scripted import ScriptedEngine

Calls = list[GenerationRequest]


@pytest.fixture
def calls() -> Calls:
    """Everything the engine was asked."""
    return []


@pytest.fixture
def engine(tiny_base: Path, tmp_path: Path, calls: Calls) -> ScriptedEngine:
    """The base adds wrongly from 5 on, ``good`` never, ``chatty`` is cut off; each says which sample it is."""

    def script(request: GenerationRequest, index: int) -> str:
        calls.append(request)
        a = int(tokenizer.decode(request.prompt_ids).split("user\n")[1].split()[0])
        if request.member == "chatty":
            return "well, " * 50
        wrong = request.member is None and a >= 5
        return f"{index} then {a + 3 + wrong}"

    engine = ScriptedEngine(EngineConfig(name="scripted"), script)
    tokenizer = load_tokenizer(tiny_base)
    engine.start(EngineBase(tiny_base, torch.float32, 1, 2, 200))
    return engine


@pytest.fixture
def load_members(engine: ScriptedEngine, tmp_path: Path) -> Callable[[], None]:
    """Gives the engine the adapters of the members."""

    def load() -> None:
        for name in ("good", "chatty"):
            write_folder(tmp_path / name, config_text(1, 1.0, [], ""), {"unused": torch.zeros(1)})
            engine.load(LoadedAdapter(name, 0, tmp_path / name, name))

    return load


@pytest.fixture
def players(tmp_path: Path) -> list[Player]:
    """The base and two members."""
    names = {"base": None, "good": "good", "chatty": "chatty"}
    return [
        Player(name, member, f"weights of {name}", tmp_path / "out" / name) for name, member in names.items()
    ]


@pytest.fixture
def evaluator(
    engine: ScriptedEngine, tiny_base: Path, load_members: Callable[[], None]
) -> Callable[..., Evaluator]:
    """Makes an evaluator with settings."""

    def make(**settings: float) -> Evaluator:
        tokenizer = load_tokenizer(tiny_base)
        chosen = EvaluationSettings(**settings)  # type: ignore[arg-type]
        return Evaluator(engine, tokenizer, True, chosen, lambda *_: None, load_members)

    return make


def test_scores_every_player(
    evaluator: Callable[..., Evaluator], sums: Sums, players: list[Player], calls: Calls
) -> None:
    result = evaluator().evaluate(sums, players)
    assert {name: score.accuracy for name, score in result.scores.items()} == {
        "base": 0.5,
        "good": 1.0,
        "chatty": 0.0,
    }
    assert {name: score.truncated for name, score in result.scores.items()} == {
        "base": 0.0,
        "good": 0.0,
        "chatty": 1.0,
    }
    assert result.title == "Sums"
    assert result.complete
    assert all((call.max_tokens, call.temperature, call.stop) == (40, 0.0, ("\n",)) for call in calls)
    assert len({call.seed for call in calls}) == 10


def test_keeps_prompt_response_answer_and_verdict(
    evaluator: Callable[..., Evaluator], sums: Sums, players: list[Player]
) -> None:
    evaluator().evaluate(sums, players)
    last = response_file(players[0].folder, "sums").read()[-1]
    assert (last.asked.item, last.asked.prompt) == ("sum-9", "9 + 3 =It is ")
    assert last.text == "It is 0 then 13"
    assert last.grade is not None
    assert (last.grade.correct, last.grade.answer, last.grade.reason) == (False, "13", "wrong")


def test_asks_only_what_is_not_known_yet(
    evaluator: Callable[..., Evaluator], sums: Sums, players: list[Player], calls: Calls
) -> None:
    first = evaluator(limit=4).evaluate(sums, players)
    assert first.title == "Sums (4 of 10 items)"
    assert len(calls) == 12
    whole = evaluator().evaluate(sums, players)
    assert len(calls) == 30
    assert evaluator().evaluate(sums, players).scores == whole.scores
    assert evaluator(limit=4).evaluate(sums, players).scores == first.scores
    assert len(calls) == 30
    assert len(response_file(players[0].folder, "sums").read()) == 10


def test_a_run_broken_off_goes_on(
    evaluator: Callable[..., Evaluator],
    sums: Sums,
    players: list[Player],
    calls: Calls,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("populora.evaluation.evaluator._BATCH", 6)
    append, written = ResponseFile.append, []

    def broken_off(self: ResponseFile, responses: object) -> None:
        if len(written) == 6:
            raise KeyboardInterrupt
        written.append(self)
        append(self, responses)  # type: ignore[arg-type]

    monkeypatch.setattr(ResponseFile, "append", broken_off)
    with pytest.raises(KeyboardInterrupt):
        evaluator().evaluate(sums, players)
    monkeypatch.setattr(ResponseFile, "append", append)
    calls.clear()
    assert evaluator().evaluate(sums, players).scores["base"].accuracy == 0.5
    assert len(calls) == 30 - 2 * 6


def test_other_weights_are_asked_anew(
    evaluator: Callable[..., Evaluator], sums: Sums, players: list[Player], calls: Calls, tmp_path: Path
) -> None:
    evaluator().evaluate(sums, players[1:2])
    evaluator().evaluate(sums, [Player("good", "good", "later weights", players[1].folder)])
    assert len(calls) == 20


def test_samples_differ_by_seed(
    evaluator: Callable[..., Evaluator], sums: Sums, players: list[Player], calls: Calls
) -> None:
    score = evaluator(samples=3, temperature=1.0, max_tokens=30).evaluate(sums, players[:1]).scores["base"]
    assert (score.samples, score.items, score.passed) == (3, 10, 0.5)
    assert {(call.count, call.temperature, call.max_tokens) for call in calls} == {(3, 1.0, 30)}
    asked = [response.asked for response in response_file(players[0].folder, "sums").read()[:3]]
    assert [a.seed - asked[0].seed for a in asked] == [0, 1, 2]


def test_several_greedy_samples_are_refused(
    evaluator: Callable[..., Evaluator], sums: Sums, players: list[Player]
) -> None:
    with pytest.raises(ConfigError, match="2 samples at temperature 0"):
        evaluator(samples=2).evaluate(sums, players)


def test_an_engine_that_fails_is_restarted_once(
    evaluator: Callable[..., Evaluator],
    engine: ScriptedEngine,
    sums: Sums,
    players: list[Player],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generate, failures = engine.generate, iter([True, False, True, True])

    def sometimes(*arguments: object) -> object:
        if next(failures):
            raise EngineError("died")
        return generate(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "generate", sometimes)
    scores = evaluator().evaluate(sums, players[:2]).scores
    assert [scores[name].accuracy for name in ("base", "good")] == [0.5, 1.0]
    with pytest.raises(EngineError, match="died"):
        evaluator().evaluate(sums, players[2:])


def test_a_suite_with_a_caveat_is_named_so(
    evaluator: Callable[..., Evaluator], sums_without_hidden_tests: Sums, players: list[Player]
) -> None:
    result = evaluator(limit=2).evaluate(sums_without_hidden_tests, players[:1])
    assert result.title == "Sums (public tests only, 2 of 10 items)"
    assert not result.complete
