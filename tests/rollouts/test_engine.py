"""What all engines have in common, tried with the scripted one."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer

from populora.config import EngineConfig
from populora.errors import ConfigError, EngineError
from populora.records import Completion
from populora.rollouts.engine import (
    EngineBase,
    GenerationRequest,
    LoadedAdapter,
    engines,
    model_len,
)
from populora.rollouts.scripted import ScriptedEngine


class Recorder(ScriptedEngine):
    """Keeps the batches it is given."""

    def __init__(self, config: EngineConfig) -> None:
        super().__init__(config, lambda request, index: f"{request.prompt_ids[0]}/{request.seed + index}")
        self.batches: list[list[GenerationRequest]] = []

    def _sample(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[int, tuple[Completion, ...]]]:
        self.batches.append(list(requests))
        return reversed(list(super()._sample(requests)))


def _request(
    prompt: Sequence[int], member: str | None = None, seed: int = 0, count: int = 1
) -> GenerationRequest:
    return GenerationRequest(tuple(prompt), member, count, 64, 1.0, seed)


@pytest.fixture
def base(tiny_base: Path) -> EngineBase:
    return EngineBase(tiny_base, torch.float32, rank=4, live_adapters=2, needed_len=100)


@pytest.fixture
def engine(base: EngineBase, tmp_path: Path) -> Iterator[Recorder]:
    (tmp_path / "adapter_model.safetensors").touch()
    with Recorder(EngineConfig(name="scripted")) as engine:
        engine.start(base)
        for member in ("a", "b"):
            engine.load(LoadedAdapter(member, 0, tmp_path, "digest"))
        yield engine


def test_progress_counts_samples_as_they_come(engine: Recorder) -> None:
    seen: list[tuple[int, int]] = []
    engine.generate([_request([9], count=2), _request([5]), _request([])], lambda *now: seen.append(now))
    assert seen[-1] == (4, 4)
    assert len(seen) == 3


def test_results_are_in_the_order_of_the_requests(engine: Recorder) -> None:
    requests = [_request([9], "b", seed=10, count=2), _request([5]), _request([7], "a", seed=3)]
    texts = [tuple(c.text for c in completions) for completions in engine.generate(requests)]
    assert texts == [("9/10", "9/11"), ("5/0",), ("7/3",)]


def test_the_batch_does_not_depend_on_the_order_of_the_requests(engine: Recorder) -> None:
    requests = [_request([p], m, seed=s) for p in (8, 3) for m in ("b", None, "a") for s in (1, 0)]
    engine.generate(requests)
    engine.generate(list(reversed(requests)))
    assert engine.batches[0] == engine.batches[1]
    assert [(r.member, r.prompt_ids[0], r.seed) for r in engine.batches[0]] == [
        (m, p, s) for m in (None, "a", "b") for p in (3, 8) for s in (0, 1)
    ]


def test_prompts_without_room_get_empty_responses(engine: Recorder) -> None:
    too_long, longest, fits = engine.generate(
        [_request([3] * 100, count=3), _request([3] * 99, count=1), _request([4])]
    )
    assert too_long == (Completion((), (), "", "length"),) * 3
    assert len(longest[0].token_ids) == 1
    assert fits[0].finish_reason == "stop"
    assert [r.max_tokens for r in engine.batches[0]] == [1, 64]


def test_a_response_ends_with_the_end_token_unless_it_is_cut(engine: Recorder, tiny_base: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_base)
    [[whole]] = engine.generate([_request([9], seed=123)])
    assert list(whole.token_ids) == [*tokenizer.encode("9/123"), tokenizer.eos_token_id]
    assert len(whole.logprobs) == len(whole.token_ids)
    [[cut]] = engine.generate([_request([9] * 97, seed=123)])
    assert (cut.text, cut.finish_reason) == ("9/1", "length")


def test_a_member_without_adapter_is_an_error(engine: Recorder) -> None:
    engine.unload("b")
    engine.unload("b")
    with pytest.raises(EngineError, match="no adapter of b"):
        engine.generate([_request([4], "a"), _request([4], "b")])
    assert set(engine.adapters) == {"a"}


def test_a_failed_load_leaves_no_adapter(engine: Recorder, tmp_path: Path) -> None:
    with pytest.raises(EngineError):
        engine.load(LoadedAdapter("a", 1, tmp_path / "nothing", "digest"))
    assert set(engine.adapters) == {"b"}


@pytest.mark.parametrize(
    ("asked", "needed", "expected"), [(None, 300, 300), (None, 5000, 1024), (1024, 300, 1024), (64, 300, 64)]
)
def test_length_is_what_is_asked_or_needed_within_the_bases_limit(
    tiny_base: Path, asked: int | None, needed: int, expected: int
) -> None:
    base = EngineBase(tiny_base, torch.float32, rank=4, live_adapters=2, needed_len=needed)
    assert model_len(EngineConfig(max_model_len=asked), base) == expected


def test_a_length_beyond_the_base_is_refused(base: EngineBase) -> None:
    with pytest.raises(ConfigError, match=r"max_model_len must be at most 1024.*got 1025"):
        model_len(EngineConfig(max_model_len=1025), base)


def test_a_folder_without_model_is_refused(tmp_path: Path) -> None:
    base = EngineBase(tmp_path, torch.float32, rank=4, live_adapters=2, needed_len=10)
    with pytest.raises(ConfigError, match="no model folder"):
        model_len(EngineConfig(), base)


def test_engines_are_selected_by_name() -> None:
    assert isinstance(engines["scripted"](EngineConfig(name="scripted")), ScriptedEngine)
