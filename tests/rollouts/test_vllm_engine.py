"""vLLM behind the engine's interface, against each member alone and against transformers with PEFT."""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

from populora.config import AdapterConfig, EngineConfig
from populora.errors import ConfigError, EngineError
from populora.population.bank import AdapterBank
from populora.records import Completion, Member, Role
from populora.rollouts.engine import EngineBase, GenerationRequest
from populora.rollouts.sync import AdapterSync
from populora.rollouts.vllm_engine import VLLMEngine, _shares, allowed_rank

MEMBERS = tuple(Member(name, Role.STUDENT) for name in ("teacher-0", "student-0", "student-1"))
NAMES: tuple[str | None, ...] = (None, *(member.name for member in MEMBERS))
PROMPTS = tuple(tuple(range(3 + i, 40 + 9 * i)) for i in range(4))
LONGEST = 160
SHARED_MEMORY = Path("/dev/shm")


@dataclass
class Stage:
    """A running engine and where its adapters come from."""

    engine: VLLMEngine
    bank: AdapterBank
    sync: AdapterSync
    environment: dict[str, str]
    shared: set[Path]


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


@pytest.fixture(scope="module")
def stage(tiny_base: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    base = AutoModelForCausalLM.from_pretrained(tiny_base, dtype=torch.float32)
    bank = AdapterBank(base, [m.name for m in MEMBERS], AdapterConfig(rank=24, alpha=36.0), seed=0)
    for member in MEMBERS:
        _train(bank, member.name, seed=len(member.name) + int(member.name[-1]))
    environment, shared = _environment(), set(SHARED_MEMORY.iterdir())
    engine = VLLMEngine(EngineConfig(processes=2, max_sequences=24, memory_gib=0.1, start_timeout=1800))
    engine.start(EngineBase(tiny_base, torch.float32, rank=24, live_adapters=3, needed_len=LONGEST))
    sync = AdapterSync(engine, torch.float32, tmp_path_factory.mktemp("adapters"))
    sync(bank, MEMBERS)
    yield Stage(engine, bank, sync, environment, shared)
    sync.close()
    engine.close()


def _train(bank: AdapterBank, name: str, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in bank.parameters_of(name):
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))


def _requests(
    names: Sequence[str | None], temperature: float, count: int = 1, max_tokens: int = 24
) -> list[GenerationRequest]:
    return [
        GenerationRequest(prompt, name, count, max_tokens, temperature, seed=100 * i)
        for i, prompt in enumerate(PROMPTS)
        for name in names
    ]


def _tokens(completions: Sequence[tuple[Completion, ...]]) -> list[tuple[tuple[int, ...], ...]]:
    return [tuple(c.token_ids for c in samples) for samples in completions]


@pytest.mark.parametrize(("rank", "allowed"), [(1, 1), (2, 8), (24, 32), (257, 320), (512, 512)])
def test_ranks_are_rounded_up_to_those_vllm_takes(rank: int, allowed: int) -> None:
    assert allowed_rank(rank) == allowed


@pytest.mark.parametrize(
    ("counts", "parts", "expected"),
    [
        ([8, 8, 8, 8], 2, [[8, 8], [8, 8]]),
        ([8, 8, 8, 8], 1, [[8, 8, 8, 8]]),
        ([1, 1, 1, 9], 2, [[1, 1, 1], [9]]),
        ([9, 1, 1, 1], 2, [[9], [1, 1, 1]]),
        ([4] * 7, 3, [[4, 4], [4, 4, 4], [4, 4]]),
        ([5], 3, [[], [5], []]),
        ([], 2, [[], []]),
    ],
)
def test_batches_are_cut_into_equal_consecutive_parts(
    counts: list[int], parts: int, expected: list[list[int]]
) -> None:
    requests = [GenerationRequest((1,), None, count, 8, 1.0, seed=i) for i, count in enumerate(counts)]
    shares = _shares(requests, parts)
    assert [[request.count for request in share] for share in shares] == expected
    assert [request for share in shares for request in share] == requests


def test_a_rank_beyond_vllm_is_refused() -> None:
    with pytest.raises(ConfigError, match="at most 512"):
        allowed_rank(513)


def test_without_vllm_the_error_says_what_to_install(
    tiny_base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EngineError, match=r"populora-trainer\[cpu\].*populora-trainer\[cuda\]"):
        VLLMEngine(EngineConfig()).start(EngineBase(tiny_base, torch.float32, 4, 1, 64))


def test_an_engine_that_is_not_running_says_so() -> None:
    with pytest.raises(EngineError, match="not running"):
        VLLMEngine(EngineConfig()).reset_cache()


@pytest.mark.engine
def test_the_trainer_is_left_alone(stage: Stage) -> None:
    assert _environment() == stage.environment
    assert "vllm" not in sys.modules
    assert stage.engine.max_model_len == LONGEST


@pytest.mark.engine
def test_a_mixed_batch_gives_what_each_gives_alone(stage: Stage) -> None:
    mixed = stage.engine.generate(_requests(NAMES, temperature=0.0))
    alone = [stage.engine.generate(_requests([name], temperature=0.0)) for name in NAMES]
    for j, single in enumerate(alone):
        assert _tokens(mixed[j :: len(NAMES)]) == _tokens(single)
        for [together], [apart] in zip(mixed[j :: len(NAMES)], single, strict=True):
            assert together.logprobs == pytest.approx(apart.logprobs, abs=1e-5)
    assert len({str(_tokens(single)) for single in alone}) == len(NAMES)


@pytest.mark.engine
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_logprobs_are_those_of_transformers_with_peft(
    stage: Stage, tiny_base: Path, temperature: float
) -> None:
    requests = _requests(NAMES, temperature)
    for request, [completion] in zip(requests, stage.engine.generate(requests), strict=True):
        model = AutoModelForCausalLM.from_pretrained(tiny_base, dtype=torch.float32)
        if request.member is not None:
            model = PeftModel.from_pretrained(model, stage.engine.adapters[request.member].path)
        ids = torch.tensor([[*request.prompt_ids, *completion.token_ids]])
        with torch.no_grad():
            logits = model.eval()(ids).logits[0, len(request.prompt_ids) - 1 : -1]
        logprobs = (logits / temperature).log_softmax(-1)
        expected = logprobs.gather(-1, torch.tensor(completion.token_ids)[:, None])[:, 0]
        assert completion.logprobs == pytest.approx(expected.tolist(), abs=1e-3)


@pytest.mark.engine
def test_the_engine_holds_what_the_trainer_has(stage: Stage) -> None:
    before = {member.name: stage.engine.fingerprint(member.name) for member in MEMBERS}
    assert len(stage.engine._call("fingerprint", stage.engine._numbers["student-0"])) == 2
    assert before == {m.name: stage.bank.fingerprint(m.name, torch.float32) for m in MEMBERS}
    assert len(set(before.values())) == len(MEMBERS)


@pytest.mark.engine
def test_sample_i_has_the_seed_plus_i(stage: Stage) -> None:
    [together] = stage.engine.generate([GenerationRequest(PROMPTS[0], "student-0", 4, 24, 1.0, seed=7)])
    apart = stage.engine.generate(
        [GenerationRequest(PROMPTS[0], "student-0", 1, 24, 1.0, seed=7 + i) for i in range(4)]
    )
    assert [c.token_ids for c in together] == [c.token_ids for [c] in apart]
    assert len({c.token_ids for c in together}) == 4


@pytest.mark.engine
def test_greedy_samples_are_equal(stage: Stage) -> None:
    [samples] = stage.engine.generate([GenerationRequest(PROMPTS[0], None, 3, 8, 0.0, seed=7)])
    assert len(samples) == 3
    assert len(set(samples)) == 1


@pytest.mark.engine
def test_prompts_too_long_for_a_response_are_data(stage: Stage) -> None:
    full, one_left = stage.engine.generate(
        [GenerationRequest((5,) * n, "student-1", 2, 50, 1.0, seed=1) for n in (LONGEST, LONGEST - 1)]
    )
    assert full == (Completion((), (), "", "length"),) * 2
    assert [len(c.token_ids) for c in one_left] == [1, 1]


@pytest.mark.engine
def test_responses_end_with_the_end_token(stage: Stage, tiny_base: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_base)
    samples = [c for r in stage.engine.generate(_requests(NAMES, 1.0, 16, 80)) for c in r]
    stopped = [c for c in samples if c.finish_reason == "stop"]
    assert stopped
    for completion in samples:
        ended = completion.token_ids[-1] == tokenizer.eos_token_id
        assert ended == (completion.finish_reason == "stop")
        assert tokenizer.eos_token_id not in completion.token_ids[:-1]
        assert len(completion.logprobs) == len(completion.token_ids)
        assert completion.text == tokenizer.decode(completion.token_ids, skip_special_tokens=True)


@pytest.mark.engine
def test_a_stop_text_ends_a_response_and_belongs_to_it(stage: Stage, tiny_base: Path) -> None:
    request = GenerationRequest(PROMPTS[1], None, 1, 40, 0.0, seed=0)
    [[whole]] = stage.engine.generate([request])
    tokenizer = AutoTokenizer.from_pretrained(tiny_base)
    letters = [i for i, token in enumerate(whole.token_ids) if tokenizer.decode([token]).isascii()]
    stop = tokenizer.decode([whole.token_ids[letters[0]]])
    [[cut]] = stage.engine.generate([GenerationRequest(PROMPTS[1], None, 1, 40, 0.0, 0, stop=(stop,))])
    assert cut.token_ids == whole.token_ids[: letters[0] + 1]
    assert cut.text.endswith(stop)
    assert cut.finish_reason == "stop"


@pytest.mark.engine
def test_killed_while_generating_it_restarts_and_repeats_itself(stage: Stage) -> None:
    requests = _requests(NAMES, 1.0, count=3, max_tokens=60)
    stage.engine.reset_cache()
    before = stage.engine.generate(requests)
    servers = [child for child in psutil.Process().children() if "vllm_server" in " ".join(child.cmdline())]

    def kill(done: int, total: int) -> None:
        assert total == 3 * len(requests)
        while servers:
            servers.pop().send_signal(signal.SIGKILL)

    with pytest.raises(
        EngineError, match=r"failed with \d+ of 48 responses generated: .*killed from outside"
    ):
        stage.engine.generate(requests, kill)
    with pytest.raises(EngineError, match="not running"):
        stage.engine.generate(requests)
    held = list(stage.engine.adapters.values())
    stage.engine.restart()
    assert not stage.engine.adapters
    for adapter in held:
        stage.engine.load(adapter)
    assert stage.engine.generate(list(reversed(requests))) == list(reversed(before))


@pytest.mark.engine
def test_new_weights_replace_the_old_and_can_be_unloaded(stage: Stage) -> None:
    request = GenerationRequest(PROMPTS[2], "student-1", 1, 24, 0.0, 0)
    before, old = stage.engine.generate([request]), stage.engine.fingerprint("student-1")
    _train(stage.bank, "student-1", seed=9)
    advanced = Member("student-1", Role.STUDENT, version=1)
    assert stage.sync(stage.bank, [advanced]).loaded == (advanced,)
    assert stage.engine.fingerprint("student-1") == stage.bank.fingerprint("student-1", torch.float32) != old
    assert stage.engine.generate([request]) != before
    number = stage.engine._numbers["student-1"]
    stage.engine.unload("student-1")
    with pytest.raises(EngineError, match="no adapter of student-1"):
        stage.engine.generate([request])
    with pytest.raises(EngineError, match="KeyError"):
        stage.engine._call("fingerprint", number)


@pytest.mark.engine
def test_nothing_is_left_after_close(stage: Stage) -> None:
    stage.engine.close()
    assert not [p for p in psutil.process_iter(["cmdline"]) if _is_server_of_this_process(p)]
    assert set(SHARED_MEMORY.iterdir()) <= stage.shared


def _is_server_of_this_process(process: psutil.Process) -> bool:
    return "vllm_server" in " ".join(process.info["cmdline"] or ()) and process.ppid() == os.getpid()


@pytest.mark.engine
def test_a_cache_that_does_not_fit_is_explained(tiny_base: Path) -> None:
    engine = VLLMEngine(EngineConfig(processes=1, memory_gib=1e5, start_timeout=1800))
    with pytest.raises(EngineError, match=r"does not start.*data\.engine\.memory_gib"):
        engine.start(EngineBase(tiny_base, torch.float32, rank=8, live_adapters=1, needed_len=64))
