"""The process that runs vLLM for a :class:`~populora.rollouts.vllm_engine.VLLMEngine`."""

import os
import sys
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from populora.config import EngineConfig
from populora.records import Completion
from populora.rollouts.decoding import Decoder
from populora.rollouts.engine import EngineBase, GenerationRequest
from populora.rollouts.process import Part, serve

_BATCH_TOKENS = 4096
_BLOCK_TOKENS = 32


@dataclass(frozen=True)
class Served:
    """What a vLLM process is started with."""

    base: EngineBase
    config: EngineConfig
    max_model_len: int
    max_rank: int
    """The adapters' rank, rounded up to one that vLLM takes."""
    modules: tuple[str, ...]
    """Names of the modules that may be adapted; others cost nothing."""


@dataclass(frozen=True)
class AdapterFile:
    """An adapter as vLLM is told of it."""

    name: str
    number: int
    """Positive, never used for another."""
    folder: str


class VLLMServer:
    """vLLM's synchronous engine behind the few calls that are needed of it."""

    def __init__(self) -> None:
        self._llm: Any = None
        self._decoder: Any = None
        self._adapters: dict[int, Any] = {}

    def start(self, served: Served) -> None:
        """Load the base; all memory is taken here."""
        from vllm.platforms import current_platform

        own = _cpu_arguments(served) if current_platform.is_cpu() else _accelerator_arguments(served)

        from vllm import EngineArgs, LLMEngine

        arguments = EngineArgs(
            model=str(served.base.path),
            dtype=str(served.base.dtype).removeprefix("torch."),
            max_model_len=served.max_model_len,
            max_num_seqs=served.config.max_sequences,
            enable_lora=True,
            max_loras=served.base.live_adapters,
            max_cpu_loras=served.base.live_adapters + 1,
            max_lora_rank=served.max_rank,
            lora_target_modules=list(served.modules),
            logprobs_mode="processed_logprobs",
            worker_extension_cls="populora.rollouts.vllm_worker.AdapterInspector",
            enable_prefix_caching=True,
            disable_log_stats=True,
            use_tqdm_on_load=False,
            **own,
        )
        self._llm = LLMEngine.from_engine_args(arguments)
        self._decoder = Decoder(self._llm.get_tokenizer())

    def load(self, adapter: AdapterFile) -> None:
        """Load an adapter and put it into a slot."""
        from vllm.lora.request import LoRARequest

        request = LoRARequest(adapter.name, adapter.number, adapter.folder)
        if not self._llm.add_lora(request):
            raise RuntimeError(f"vLLM refuses the adapter in {adapter.folder}")
        self._adapters[adapter.number] = request

    def unload(self, number: int) -> None:
        """Free an adapter."""
        self._llm.remove_lora(number)
        del self._adapters[number]

    def fingerprint(self, number: int) -> str:
        """Return the digest of the weights in the adapter's slot."""
        arguments = (number, self._adapters[number].lora_path)
        digest: str = self._llm.collective_rpc("adapter_fingerprint", args=arguments)[0]
        return digest

    def reset_cache(self) -> None:
        """Forget cached prompts."""
        self._llm.reset_prefix_cache()

    def sleep(self) -> None:
        """Move the weights to the host's memory and drop the cache."""
        self._llm.sleep(level=1)

    def wake(self) -> None:
        """Undo :meth:`sleep`."""
        self._llm.wake_up()

    def generate(
        self, requests: Sequence[tuple[GenerationRequest, int | None]]
    ) -> Generator[Part, None, None]:
        """Sample for requests, each with the number of its adapter; parts are (index, completions) as they finish."""
        for index, (request, number) in enumerate(requests):
            self._llm.add_request(
                str(index),
                {"prompt_token_ids": list(request.prompt_ids)},
                _sampling(request),
                lora_request=None if number is None else self._adapters[number],
            )
        while self._llm.has_unfinished_requests():
            for output in self._llm.step():
                if output.finished:
                    index = int(output.request_id)
                    yield Part((index, self._completions(requests[index][0], output.outputs)))

    def _completions(self, request: GenerationRequest, outputs: Sequence[Any]) -> tuple[Completion, ...]:
        texts = self._decoder([output.token_ids for output in outputs])
        completions = [
            Completion(
                token_ids=tuple(output.token_ids),
                logprobs=tuple(output.logprobs.logprobs),
                text=text,
                finish_reason="stop" if output.finish_reason == "stop" else "length",
            )
            for output, text in zip(outputs, texts, strict=True)
        ]
        return tuple(completions) * (request.count // len(completions))


def _sampling(request: GenerationRequest) -> Any:
    """One greedy sample stands for all: they are equal."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    greedy = request.temperature == 0
    return SamplingParams(
        n=1 if greedy else request.count,
        temperature=request.temperature,
        max_tokens=request.max_tokens,
        seed=None if greedy else request.seed,
        stop=list(request.stop),
        include_stop_str_in_output=True,
        detokenize=bool(request.stop),
        logprobs=0,
        flat_logprobs=True,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )


def _cpu_arguments(served: Served) -> dict[str, Any]:
    """Settings for a CPU, where one process is faster than vLLM's usual three.

    Prompts are not split over steps: with a seed for each request vLLM 0.32 fails to rewind the generator of a
    request whose prompt is unfinished. Small blocks let short prompts share their beginnings. Without compilation the
    first step does not spend ten seconds on compiling one comparison.
    """
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    torch.compiler.set_stance("force_eager")
    return {
        "enforce_eager": True,
        "kv_cache_memory_bytes": int(served.config.memory_gib * 2**30),
        "block_size": _BLOCK_TOKENS,
        "enable_chunked_prefill": False,
        "max_num_batched_tokens": max(_BATCH_TOKENS, served.max_model_len),
    }


def _accelerator_arguments(served: Served) -> dict[str, Any]:
    return {
        "gpu_memory_utilization": served.config.gpu_memory_utilization,
        "enable_sleep_mode": True,
    }


if __name__ == "__main__":
    serve(VLLMServer(), int(sys.argv[1]))
