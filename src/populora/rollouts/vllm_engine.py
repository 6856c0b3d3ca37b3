"""vLLM as the inference engine."""

import importlib.util
import itertools
import logging
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import torch
from typing_extensions import override

from populora.config import EngineConfig, cores
from populora.errors import ConfigError, EngineError
from populora.population.targets import target_paths
from populora.records import Completion
from populora.rollouts.engine import (
    Engine,
    EngineBase,
    GenerationRequest,
    LoadedAdapter,
    engines,
    model_len,
)
from populora.rollouts.process import Call, EngineProcess, Part, call_each, stream_each
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
    """vLLM in processes of its own, with room for all adapters in one batch.

    On a CPU half of a step of a small model is vLLM's own work, which one thread does: engines side by side, each
    with a part of the batch, make use of all cores. Adapters are told to them under a name that carries the version,
    and under a number that is never used twice.
    """

    def __init__(self, config: EngineConfig) -> None:
        super().__init__(config)
        self._processes: tuple[EngineProcess, ...] = ()
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
        self._start_processes()

    @override
    def restart(self) -> None:
        self.close()
        self._adapters.clear()
        self._numbers.clear()
        self._start_processes()

    @override
    def close(self) -> None:
        for process in self._processes:
            process.close()
        self._processes = ()

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
        return " ".join(sorted(set(self._call("fingerprint", self._numbers[adapter.member]))))

    @override
    def _sample(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[int, tuple[Completion, ...]]]:
        done, total = 0, sum(request.count for request in requests)
        shares = _shares(requests, len(self._running))
        first = list(itertools.accumulate(map(len, shares), initial=0))
        calls = [Call("generate", ([(r, self._number(r)) for r in share],)) for share in shares]
        try:
            with closing(stream_each(self._running, calls, self.config.request_timeout)) as stream:
                for process, message in stream:
                    if isinstance(message, Part):
                        index, completions = message.value
                        done += len(completions)
                        yield first[process] + index, completions
        except EngineError as error:
            self.close()
            raise EngineError(f"vLLM failed with {done} of {total} responses generated: {error}") from error

    def _number(self, request: GenerationRequest) -> int | None:
        return None if request.member is None else self._numbers[request.member]

    def _call(self, method: str, *arguments: object) -> list[Any]:
        calls = [Call(method, arguments)] * len(self._running)
        try:
            return call_each(self._running, calls, _CALL_TIMEOUT)
        except EngineError as error:
            raise EngineError(f"vLLM failed to {method.replace('_', ' ')}: {error}") from error

    @property
    def _running(self) -> tuple[EngineProcess, ...]:
        if not self._processes:
            raise EngineError("vLLM is not running; start or restart the engine")
        return self._processes

    def _start_processes(self) -> None:
        """Start, and once more where the first failure has no known cause."""
        for last in (False, True):
            processes = tuple(
                EngineProcess("populora.rollouts.vllm_server", environment)
                for environment in _environments(self.config)
            )
            try:
                call_each(
                    processes, [Call("start", (self._served,))] * len(processes), self.config.start_timeout
                )
            except EngineError as error:
                for process in processes:
                    process.kill()
                advice = _advice(str(error))
                if last or advice:
                    raise EngineError(f"vLLM does not start: {error}{advice}") from error
                logger.warning("vLLM did not start, trying once more: %s", error)
            else:
                self._processes = processes
                return


def _shares(requests: Sequence[GenerationRequest], count: int) -> list[list[GenerationRequest]]:
    """Cut a batch into consecutive parts of about equally many samples, so that neighbours share adapters and prompts."""
    total = max(1, sum(request.count for request in requests))
    shares: list[list[GenerationRequest]] = [[] for _ in range(count)]
    before = 0
    for request in requests:
        shares[(2 * before + request.count) * count // (2 * total + 1)].append(request)
        before += request.count
    return shares


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


def _environments(config: EngineConfig) -> list[dict[str, str]]:
    """Variables of vLLM's processes: the user's own, quiet where they say nothing, and cores shared out on a CPU."""
    quiet = {
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
        "PYTHONWARNINGS": "ignore",
    }
    own = {name: value for name, value in os.environ.items() if name != "VLLM_CPU_KVCACHE_SPACE"}
    accelerated = torch.cuda.is_available()
    count = config.process_count(accelerated)
    threads = {"OMP_NUM_THREADS": str(max(1, cores() // count)), "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    return [quiet | ({} if accelerated else threads) | own] * count


def _advice(message: str) -> str:
    return next(
        (f" {advice}" for pattern, advice in _ADVICE if re.search(pattern, message, re.IGNORECASE)), ""
    )
