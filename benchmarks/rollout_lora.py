"""Tokens per second of vLLM on a CPU with many adapters in one batch, against the bare base.

Three engines on the same random model answer the same prompts in turn: ``base`` without adapters, ``vllm`` with
vLLM's own adapter products, ``grouped`` with those of ``populora.rollouts.cpu_lora``. Every request samples at
temperature 1 with its own seed and returns log-probabilities, as rollouts do. Only figures of one run compare.

    OMP_NUM_THREADS=1 python benchmarks/rollout_lora.py [--adapters 8] [--rank 16] [--sequences 384] [--rounds 5]
"""

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from populora.config import AdapterConfig
from populora.population.bank import AdapterBank
from populora.rollouts.process import EngineProcess, serve

VARIANTS = ("base", "vllm", "grouped")
PROMPT_TOKENS, VOCABULARY = 60, 512
TIMEOUT = 3600.0


@dataclass(frozen=True)
class Setup:
    """What is measured."""

    folder: Path
    adapters: int
    rank: int
    sequences: int


@dataclass(frozen=True)
class Round:
    """One batch of responses."""

    tokens: int
    seconds: float
    cpu_seconds: float


class Contestant:
    """One variant, in a process of its own."""

    def start(self, setup: Setup, with_adapters: bool) -> None:
        """Load the model and the adapters."""
        from vllm import LLM
        from vllm.lora.request import LoRARequest

        own: dict[str, Any] = {}
        if with_adapters:
            own = {"enable_lora": True, "max_loras": setup.adapters, "max_lora_rank": setup.rank}
        self._llm = LLM(
            str(setup.folder),
            dtype="float32",
            max_model_len=256,
            max_num_seqs=setup.sequences,
            max_num_batched_tokens=4096,
            enable_chunked_prefill=False,
            enforce_eager=True,
            kv_cache_memory_bytes=2**30,
            block_size=32,
            skip_tokenizer_init=True,
            logprobs_mode="processed_logprobs",
            **own,
        )
        adapters = [LoRARequest(f"a{i}", i + 1, str(setup.folder / f"a{i}")) for i in range(setup.adapters)]
        rng = random.Random(0)
        self._prompts = [
            {"prompt_token_ids": [rng.randrange(3, VOCABULARY) for _ in range(PROMPT_TOKENS)]}
            for _ in range(setup.sequences)
        ]
        self._lengths = [rng.randrange(20, 69) for _ in range(setup.sequences)]
        self._requests = None
        if with_adapters:
            self._requests = [adapters[i * setup.adapters // setup.sequences] for i in range(setup.sequences)]

    def play(self) -> Round:
        """Answer all prompts once, with nothing cached."""
        from vllm import SamplingParams

        sampling = [
            SamplingParams(
                temperature=1.0,
                max_tokens=length,
                ignore_eos=True,
                seed=seed,
                logprobs=0,
                flat_logprobs=True,
                detokenize=False,
            )
            for seed, length in enumerate(self._lengths)
        ]
        self._llm.reset_prefix_cache()
        start, cpu_start = time.perf_counter(), time.process_time()
        outputs = self._llm.generate(self._prompts, sampling, use_tqdm=False, lora_request=self._requests)
        tokens = sum(len(output.outputs[0].token_ids) for output in outputs)
        return Round(tokens, time.perf_counter() - start, time.process_time() - cpu_start)


def make_model(setup: Setup) -> None:
    """Save a random model of 1.1 M parameters and its adapters."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=5,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
    )
    base = Qwen2ForCausalLM(config)
    base.save_pretrained(setup.folder)
    names = [f"a{i}" for i in range(setup.adapters)]
    bank = AdapterBank(base, names, AdapterConfig(setup.rank, 2.0 * setup.rank), seed=0)
    for name in names:
        for parameter in bank.parameters_of(name):
            torch.nn.init.normal_(parameter, std=0.02)
        bank.export(name, setup.folder / name, torch.float32)


def environment(variant: str) -> dict[str, str]:
    """Variables of a contestant: one process, quiet, and our plugin for ``grouped`` alone."""
    plugins = {} if variant == "grouped" else {"VLLM_PLUGINS": "none"}
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    own = {"PYTHONPATH": path, "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_LOGGING_LEVEL": "ERROR"}
    return {**os.environ, **own, **plugins}


def compare(setup: Setup, rounds: int) -> None:
    """Let the contestants play in turn and write a table."""
    make_model(setup)
    processes = {variant: EngineProcess(Path(__file__).stem, environment(variant)) for variant in VARIANTS}
    played: dict[str, list[Round]] = {variant: [] for variant in VARIANTS}
    for variant, process in processes.items():
        process.call("start", setup, variant != "base", timeout=TIMEOUT)
        process.call("play", timeout=TIMEOUT)
    for _ in range(rounds):
        for variant, process in processes.items():
            played[variant].append(process.call("play", timeout=TIMEOUT))
    for process in processes.values():
        process.close()
    sys.stdout.write(f"{'':8} {'tokens/s':>10} {'per CPU second':>15} {'of base':>8} {'of base, CPU':>13}\n")
    walls, cpus = (
        {v: [getattr(r, part) for r in played[v]] for v in VARIANTS} for part in ("seconds", "cpu_seconds")
    )
    for variant, results in played.items():
        tokens = results[0].tokens
        wall, cpu = (
            statistics.median(b / o for b, o in zip(times["base"], times[variant], strict=True))
            for times in (walls, cpus)
        )
        sys.stdout.write(
            f"{variant:8} {tokens / min(walls[variant]):10.0f} {tokens / min(cpus[variant]):15.0f} "
            f"{wall:8.2f} {cpu:13.2f}\n"
        )


def main() -> None:
    """Read the arguments and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--adapters", type=int, default=8)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--sequences", type=int, default=384)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        compare(Setup(Path(folder), args.adapters, args.rank, args.sequences), args.rounds)


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].isdigit():
        serve(Contestant(), int(sys.argv[1]))
    else:
        main()
