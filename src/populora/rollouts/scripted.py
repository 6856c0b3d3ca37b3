"""An engine without a model: a script writes the responses, adapters are only held and checked."""

import random
from collections.abc import Callable, Iterator, Sequence

from safetensors.torch import load_file
from typing_extensions import override

from populora.base import load_tokenizer
from populora.config import EngineConfig
from populora.errors import EngineError
from populora.population.adapter_files import CONFIG_FILE, WEIGHTS_FILE, from_tensors, scale_of
from populora.records import Completion
from populora.rollouts.engine import (
    Engine,
    EngineBase,
    GenerationRequest,
    LoadedAdapter,
    engines,
    model_len,
)
from populora.rollouts.fingerprint import as_served, fingerprint

Script = Callable[[GenerationRequest, int], str]
"""Writes sample i of a request; what it writes may depend on nothing else."""

LOGPROB = -0.5
"""Log-probability given to every scripted token."""


def modular(request: GenerationRequest, index: int) -> str:
    """Answer any prompt of any task: remainders of three, right in about a third of all cases.

    One response in eight is malformed. Meant for runs that exercise everything but a model.
    """
    rng = random.Random(request.seed + index)
    if rng.random() < 1 / 8:
        return "<think>nothing comes to mind"
    program = f"def f(x):\n    return (x + {rng.randrange(30)}) % 3"
    inputs = "\n".join(f"```input\n{x}\n```" for x in rng.sample(range(100), 12))
    return (
        f"<think>\n</think>\n<answer>\n```python\n{program}\n```\n{inputs}\n"
        f"```output\n{rng.randrange(3)}\n```\n```message\nremainder\n```\n</answer>"
    )


class ScriptedEngine(Engine):
    """Engine for tests of everything around an engine.

    Args:
        config: The engine's settings; only the length limit is used.
        script: Writes the responses.
    """

    def __init__(self, config: EngineConfig, script: Script = modular) -> None:
        super().__init__(config)
        self._script = script

    @override
    def start(self, base: EngineBase) -> None:
        self._tokenizer = load_tokenizer(base.path)
        self._dtype = base.dtype
        self.max_model_len = model_len(self.config, base)

    @override
    def restart(self) -> None:
        """Nothing dies here; adapters are forgotten as by any engine."""
        self._adapters.clear()

    @override
    def close(self) -> None:
        self._adapters.clear()

    @override
    def reset_cache(self) -> None:
        """There is no cache."""

    @override
    def _load(self, adapter: LoadedAdapter) -> None:
        if not (adapter.path / WEIGHTS_FILE).is_file():
            raise EngineError(f"{adapter.path} has no {WEIGHTS_FILE}")

    @override
    def _unload(self, member: str) -> None:
        """Nothing is held but the record."""

    @override
    def _fingerprint(self, adapter: LoadedAdapter) -> str:
        alpha, rank = scale_of((adapter.path / CONFIG_FILE).read_text())
        factors = from_tensors(load_file(adapter.path / WEIGHTS_FILE))
        return fingerprint(
            (path, *as_served(update.a, update.b, alpha / rank, self._dtype))
            for path, update in factors.items()
        )

    @override
    def _sample(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[int, tuple[Completion, ...]]]:
        for index, request in enumerate(requests):
            yield index, tuple(self._complete(request, i) for i in range(request.count))

    def _complete(self, request: GenerationRequest, index: int) -> Completion:
        text = self._script(request, index)
        written = [*self._tokenizer.encode(text, add_special_tokens=False), self._tokenizer.eos_token_id]
        kept = tuple(written[: request.max_tokens])
        if len(kept) < len(written):
            text = self._tokenizer.decode(kept, skip_special_tokens=True)
        whole = len(kept) == len(written)
        return Completion(kept, (LOGPROB,) * len(kept), text, "stop" if whole else "length")


engines.register("scripted")(ScriptedEngine)
