"""Evaluation of any Hugging Face model and LoRA adapters on it, without a run."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import torch

from populora.base import load_tokenizer, locate_base, weight_dtype
from populora.config import BaseConfig, EngineConfig
from populora.errors import CheckpointError, ConfigError
from populora.evaluation import report
from populora.evaluation.data import DataSource
from populora.evaluation.evaluator import Evaluator, Listener, Player, graded_responses, summary
from populora.evaluation.loading import load_suites
from populora.evaluation.progress import EvaluationProgress
from populora.evaluation.responses import ResponseFile
from populora.evaluation.results import BASE, Results, SuiteResult
from populora.evaluation.settings import EvaluationSettings
from populora.evaluation.suite import Decoding, Suite
from populora.population.adapter_files import CONFIG_FILE, WEIGHTS_FILE, scale_of
from populora.rollouts import scripted, vllm_engine  # noqa: F401  (register their engines)
from populora.rollouts.engine import PROMPT_ROOM, Engine, EngineBase, LoadedAdapter, engines

Dtype = Literal["auto", "float32", "bfloat16", "float16"]


def evaluate(
    model: str,
    suites: Sequence[str],
    adapters: Mapping[str, str] | None = None,
    folder: str = "evaluation-results",
    revision: str | None = None,
    dtype: Dtype = "auto",
    chat: bool | None = None,
    data: DataSource = DataSource(),
    engine: EngineConfig = EngineConfig(),
    settings: EvaluationSettings = EvaluationSettings(),
    skip_missing: bool = False,
) -> Results:
    """Evaluate a model, and adapters on it in the same batches.

    Tables are printed; they, everything as JSON, and every response go into a folder. What is there already is not
    generated again.

    Args:
        model: A folder, a hub id, or ``embedded``.
        suites: Names of suites, or ``all``.
        adapters: Folders in PEFT's format, by the name each shall have.
        folder: Where results go.
        revision: Of the hub's model.
        dtype: Of the weights; ``auto``: float32 on a CPU, bfloat16 on an accelerator.
        chat: Whether the model is asked through its chat template; none: if it has one.
        data: Where the benchmarks' data are.
        engine: Settings of the inference engine.
        settings: What differs from the suites' protocols.
        skip_missing: Go on without suites whose data are missing.

    Raises:
        ConfigError: a name or setting is wrong.
        DataError: a suite's data are missing.
        EngineError: the engine does not start, or failed twice.
    """
    base = BaseConfig(path=model, revision=revision, dtype=dtype)
    found, missing = load_suites(suites, data, settings, skip_missing)
    folders = [_AdapterFolder.read(name, Path(path)) for name, path in (adapters or {}).items()]
    path = locate_base(base)
    tokenizer = load_tokenizer(path)
    chats = bool(tokenizer.chat_template) if chat is None else chat
    kept = Path(folder) / "responses"
    players = [
        Player(BASE, None, str(path), kept / BASE),
        *(Player(adapter.name, adapter.name, adapter.digest, kept / adapter.name) for adapter in folders),
    ]
    done: list[SuiteResult] = []
    needed = PROMPT_ROOM + max(settings.decoding(suite).max_tokens for suite in found)
    with engines[engine.name](engine) as running, EvaluationProgress() as shown:
        _start(running, base, path, folders, needed)
        evaluator = Evaluator(
            running, tokenizer, chats, settings, shown, lambda: _load_adapters(running, folders)
        )
        for suite in found:
            with suite:
                done.append(evaluator.evaluate(suite, players))
            results = Results(model, "evaluated alone", tuple(done), tuple(missing))
            report.write(results, Path(folder))
    report.show(results)
    return results


@dataclass(frozen=True)
class _AdapterFolder:
    """A LoRA adapter in PEFT's format."""

    name: str
    path: Path
    rank: int
    digest: str
    """What tells its weights and scale from others."""

    @classmethod
    def read(cls, name: str, path: Path) -> Self:
        """Read what an engine must know before it starts.

        Raises:
            ConfigError: the folder holds no adapter.
        """
        try:
            config, weights = (path / CONFIG_FILE).read_bytes(), (path / WEIGHTS_FILE).read_bytes()
            _, rank = scale_of(config.decode())
        except (OSError, UnicodeDecodeError, CheckpointError) as error:
            raise ConfigError(
                f"adapter {name}: expected a folder with {CONFIG_FILE} and {WEIGHTS_FILE}: {error}"
            ) from error
        return cls(name, path, rank, hashlib.sha256(config + weights).hexdigest()[:16])


def _start(
    engine: Engine, base: BaseConfig, path: Path, adapters: Sequence[_AdapterFolder], needed_len: int
) -> None:
    engine.start(
        EngineBase(
            path=path,
            dtype=weight_dtype(base, accelerated=torch.cuda.is_available()),
            rank=max((adapter.rank for adapter in adapters), default=1),
            live_adapters=max(1, len(adapters)),
            needed_len=needed_len,
        )
    )


def _load_adapters(engine: Engine, adapters: Sequence[_AdapterFolder]) -> None:
    for adapter in adapters:
        if adapter.name not in engine.adapters:
            engine.load(LoadedAdapter(adapter.name, 0, adapter.path, adapter.digest))


def regrade(folder: str, data: DataSource = DataSource()) -> Results:
    """Grade the responses of an earlier evaluation again, without a model.

    Args:
        folder: Where its results went.
        data: Where the benchmarks' data are.

    Raises:
        ConfigError: there are no responses.
        DataError: a suite's data, or an item that was answered, are missing.
    """
    files = sorted(Path(folder).glob("responses/*/*.jsonl"))
    if not files:
        raise ConfigError(f"there are no responses in {Path(folder) / 'responses'}")
    names = list(dict.fromkeys(file.stem for file in files))
    suites, _ = load_suites(names, data, EvaluationSettings(), skip_missing=False)
    with EvaluationProgress() as shown:
        done = [_regraded(suite, [f for f in files if f.stem == suite.name], shown) for suite in suites]
    results = Results(folder, "graded again", tuple(done))
    report.write(results, Path(folder), "regraded")
    report.show(results)
    return results


def _regraded(suite: Suite[Any], files: Sequence[Path], listener: Listener) -> SuiteResult:
    start = time.perf_counter()
    read = [response for file in files for response in ResponseFile(file).read()]
    newest = {(r.asked.player, r.asked.item, r.asked.sample): r for r in read}
    with suite:
        graded = graded_responses(suite, suite.items(), list(newest.values()), listener)
    asked = [response.asked for response in graded]
    decoding = Decoding(
        max(a.max_tokens for a in asked), 1 + max(a.sample for a in asked), max(a.temperature for a in asked)
    )
    items = len({a.item for a in asked})
    return summary(suite, decoding, graded, 0.0, time.perf_counter() - start, limited=items)
