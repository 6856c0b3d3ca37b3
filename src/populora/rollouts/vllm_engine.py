"""vLLM as the inference engine."""

import importlib.util
import itertools
import logging
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from typing_extensions import override

from populora.config import EngineConfig
from populora.errors import ConfigError, EngineError
from populora.population.targets import target_paths
from populora.records import Completion
from populora.rollouts.engine import (
    Engine,
    EngineBase,
    GenerationRequest,
    LoadedAdapter,
    ProgressListener,
    engines,
    model_len,
)
from populora.rollouts.process import EngineProcess
from populora.rollouts.vllm_server import AdapterFile, Served

logger = logging.getLogger(__name__)

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Largest ranks vLLM can be told to expect."""
_CALL_TIMEOUT = 300.0
"""Seconds for calls that do not generate."""
_ADVICE = (
    (
        r"out of memory|available memory|memory runs out|MemoryError|KV cache",
        "Free memory, or lower data.engine.memory_gib (CPU), gpu_memory_utilization (GPU), or max_model_len.",
    ),
    (r"does not support LoRA|unsupported LoRA", "Choose another base: vLLM has no LoRA for this one."),
    (
        r"No module named 'vllm|ImportError",
        "Install vLLM again: pip install 'populora-trainer[cpu]' or [cuda].",
    ),
)


@engines.register("vllm")
class VLLMEngine(Engine):
    """vLLM in a process of its own, with room for all adapters in one batch.

    Adapters are told to it under a name that carries the version, and under a number that is never used twice.
    """

    def __init__(self, config: EngineConfig) -> None:
        super().__init__(config)
        self._process: EngineProcess | None = None
        self._served: Served | None = None
        self._numbers: dict[str, int] = {}
        self._next_number = itertools.count(1)

    @override
    def start(self, base: EngineBase) -> None:
        if importlib.util.find_spec("vllm") is None:
            raise EngineError(
                "vLLM is not installed: pip install 'populora-trainer[cpu]' for a CPU, or "
                "'populora-trainer[cuda]' for NVIDIA GPUs"
            )
        self.max_model_len = model_len(self.config, base)
        modules = _module_names(base.path, base.target_modules)
        self._served = Served(base, self.config, self.max_model_len, allowed_rank(base.rank), modules)
        self._start_process()

    @override
    def restart(self) -> None:
        self.close()
        self._start_process()
        for adapter in self._adapters.values():
            self._load(adapter)

    @override
    def close(self) -> None:
        if self._process is not None:
            self._process.close()
        self._process = None

    @override
    def sleep(self) -> None:
        self._call("sleep")

    @override
    def wake(self) -> None:
        self._call("wake")

    @override
    def reset_cache(self) -> None:
        self._call("reset_cache")

    @override
    def _load(self, adapter: LoadedAdapter) -> None:
        number = next(self._next_number)
        name = f"{adapter.member}-v{adapter.version}"
        self._call("load", AdapterFile(name, number, str(adapter.path)))
        self._numbers[adapter.member] = number

    @override
    def _unload(self, member: str) -> None:
        self._call("unload", self._numbers.pop(member))

    @override
    def _fingerprint(self, adapter: LoadedAdapter) -> str:
        return str(self._call("fingerprint", self._numbers[adapter.member]))

    @override
    def _sample(
        self, requests: Sequence[GenerationRequest], on_progress: ProgressListener | None
    ) -> list[tuple[Completion, ...]]:
        done = 0

        def advance(now: int, total: int) -> None:
            nonlocal done
            done = now
            if on_progress is not None:
                on_progress(now, total)

        numbered = [
            (request, self._numbers[request.member] if request.member else None) for request in requests
        ]
        try:
            completions: list[tuple[Completion, ...]] = self._running.call(
                "generate", numbered, timeout=self.config.request_timeout, on_progress=advance
            )
        except EngineError as error:
            self.close()
            total = sum(request.count for request in requests)
            raise EngineError(f"vLLM failed with {done} of {total} responses generated: {error}") from error
        return completions

    def _call(self, method: str, *arguments: object) -> Any:
        try:
            return self._running.call(method, *arguments, timeout=_CALL_TIMEOUT)
        except EngineError as error:
            raise EngineError(f"vLLM failed to {method.replace('_', ' ')}: {error}") from error

    @property
    def _running(self) -> EngineProcess:
        if self._process is None:
            raise EngineError("vLLM is not running; start or restart the engine")
        return self._process

    def _start_process(self) -> None:
        """Start, and once more where the first failure has no known cause."""
        for last in (False, True):
            process = EngineProcess("populora.rollouts.vllm_server", _environment())
            try:
                process.call("start", self._served, timeout=self.config.start_timeout)
            except EngineError as error:
                process.kill()
                advice = _advice(str(error))
                if last or advice:
                    raise EngineError(f"vLLM does not start: {error}{advice}") from error
                logger.warning("vLLM did not start, trying once more: %s", error)
            else:
                self._process = process
                return


def allowed_rank(rank: int) -> int:
    """Return the smallest rank vLLM can be told of that is no less than ``rank``.

    Raises:
        ConfigError: there is none.
    """
    for allowed in RANKS:
        if rank <= allowed:
            return allowed
    raise ConfigError(f"model.adapter.rank must be at most {RANKS[-1]} with vLLM, got {rank}")


def _module_names(folder: Path, target_modules: str | Sequence[str]) -> tuple[str, ...]:
    """Return the last names of the adapted modules; nothing but these is made adaptable in vLLM."""
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.device("meta"):
        skeleton = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    targets = target_modules if isinstance(target_modules, str) else list(target_modules)
    return tuple(sorted({path.rpartition(".")[2] for path in target_paths(skeleton, targets)}))


def _environment() -> dict[str, str]:
    """Variables of vLLM's process: the user's own, quiet where they say nothing."""
    quiet = {
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
        "PYTHONWARNINGS": "ignore",
    }
    own = {name: value for name, value in os.environ.items() if name != "VLLM_CPU_KVCACHE_SPACE"}
    return quiet | own


def _advice(message: str) -> str:
    return next(
        (f" {advice}" for pattern, advice in _ADVICE if re.search(pattern, message, re.IGNORECASE)), ""
    )
