"""What every inference engine offers, and the parts of it that do not depend on the engine."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, TypeVar

import torch

from populora.config import EngineConfig
from populora.errors import AdapterSyncError, ConfigError, EngineError
from populora.records import Completion
from populora.registry import Registry

T = TypeVar("T")

logger = logging.getLogger(__name__)

PROMPT_ROOM = 4096
"""Tokens a prompt may have where neither the base nor the config sets a limit."""

ProgressListener = Callable[[int, int], None]
"""Called with the number of finished samples and the number of all samples."""


@dataclass(frozen=True)
class EngineBase:
    """The base an engine serves, and the adapters it must have room for."""

    path: Path
    """Folder of the model and its tokenizer."""
    dtype: torch.dtype
    rank: int
    """Rank of the adapters."""
    live_adapters: int
    """Adapters that one batch may mix."""
    needed_len: int
    """Longest prompt plus response that is ever asked for, in tokens."""
    target_modules: str | Sequence[str] = "all-linear"
    """The adapted modules, as in the adapters' settings."""


@dataclass(frozen=True)
class GenerationRequest:
    """A prompt for one member."""

    prompt_ids: tuple[int, ...]
    member: str | None
    """None is the base without adapter."""
    count: int
    """Samples to draw; sample i has the seed ``seed + i``."""
    max_tokens: int
    temperature: float
    """0 is greedy."""
    seed: int
    stop: tuple[str, ...] = ()
    """Texts that end a response and stay part of it."""


@dataclass(frozen=True)
class LoadedAdapter:
    """A version of a member's adapter, exported for the engine."""

    member: str
    version: int
    path: Path
    """Folder in PEFT's format; it must stay as long as the engine holds the adapter."""
    fingerprint: str
    """The trainer's :func:`~populora.rollouts.fingerprint.fingerprint` of it."""


class Engine(ABC):
    """Generates for base and members alike, with the adapters it was given last.

    Args:
        config: The engine's settings.

    Attributes:
        max_model_len: Longest prompt plus response in tokens; known after :meth:`start`.
    """

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self.max_model_len = 0
        self._adapters: dict[str, LoadedAdapter] = {}

    @abstractmethod
    def start(self, base: EngineBase) -> None:
        """Load the base.

        Raises:
            ConfigError: the base or the adapters do not fit the engine.
            EngineError: the engine does not start.
        """

    @abstractmethod
    def restart(self) -> None:
        """Start afresh after a failure, without adapters.

        Raises:
            EngineError: the engine does not start.
        """

    @abstractmethod
    def close(self) -> None:
        """Stop the engine and free what it holds; may be called twice."""

    @abstractmethod
    def reset_cache(self) -> None:
        """Forget cached prompts: what follows depends on requests and adapters alone."""

    @abstractmethod
    def _load(self, adapter: LoadedAdapter) -> None: ...

    @abstractmethod
    def _unload(self, member: str) -> None: ...

    @abstractmethod
    def _fingerprint(self, adapter: LoadedAdapter) -> str: ...

    @abstractmethod
    def _sample(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[int, tuple[Completion, ...]]]:
        """Sample for requests that fit; yield (index, completions) of each as it finishes, in any order."""

    def sleep(self) -> None:  # noqa: B027
        """Move the weights out of the accelerator's memory; nothing to do on a CPU."""

    def wake(self) -> None:  # noqa: B027
        """Undo :meth:`sleep`."""

    @property
    def adapters(self) -> Mapping[str, LoadedAdapter]:
        """What the engine holds, by member."""
        return self._adapters

    def load(self, adapter: LoadedAdapter) -> None:
        """Take over an adapter in place of the member's former version.

        Raises:
            EngineError: the adapter cannot be loaded; the engine then holds none for this member.
        """
        self.unload(adapter.member)
        self._load(adapter)
        self._adapters[adapter.member] = adapter

    def unload(self, member: str) -> None:
        """Free a member's adapter, if there is one."""
        if member in self._adapters:
            self._unload(member)
            del self._adapters[member]

    def fingerprint(self, member: str) -> str:
        """Return the digest of the weights that the engine really uses for ``member``."""
        return self._fingerprint(self._adapters[member])

    def generate(
        self, requests: Sequence[GenerationRequest], on_progress: ProgressListener | None = None
    ) -> list[tuple[Completion, ...]]:
        """Sample responses to all requests in one batch, and return them in the order of the requests.

        Raises:
            EngineError: as :meth:`stream`.
        """
        results: dict[int, tuple[Completion, ...]] = {}
        done, total = 0, sum(request.count for request in requests)
        with closing(self.stream(requests)) as stream:
            for index, completions in stream:
                results[index] = completions
                done += len(completions)
                if on_progress is not None:
                    on_progress(done, total)
        return [results[index] for index in range(len(requests))]

    def stream(
        self, requests: Sequence[GenerationRequest]
    ) -> Generator[tuple[int, tuple[Completion, ...]], None, None]:
        """Sample responses to all requests in one batch, and yield (index, completions) of each as it finishes.

        The batch is ordered by member and prompt, so that prompts in common are computed once; what is sampled does
        not depend on it. A prompt that leaves no room for a response gets empty ones of finish reason ``length``.
        Close the generator if you do not exhaust it.

        Raises:
            EngineError: a member has no adapter, or the engine died or hung.
        """
        unknown = {r.member for r in requests if r.member is not None} - self._adapters.keys()
        if unknown:
            raise EngineError(
                f"the engine holds no adapter of {', '.join(sorted(unknown))}; synchronise adapters first"
            )
        fitting = [i for i, r in enumerate(requests) if 0 < len(r.prompt_ids) < self.max_model_len]
        for index in sorted(set(range(len(requests))) - set(fitting)):
            yield index, (Completion((), (), "", "length"),) * requests[index].count
        fitting.sort(key=lambda i: _batch_key(requests[i]))
        for place, completions in self._sample([self._trimmed(requests[i]) for i in fitting]):
            yield fitting[place], completions

    def _trimmed(self, request: GenerationRequest) -> GenerationRequest:
        room = self.max_model_len - len(request.prompt_ids)
        return replace(request, max_tokens=min(request.max_tokens, room))

    def retry(self, act: Callable[[], T]) -> T:
        """Do something; should the engine fail, restart it once and do it again from its beginning.

        The engine restarts without adapters, so ``act`` must load those it needs.

        Raises:
            EngineError: the engine failed twice.
        """
        try:
            return act()
        except AdapterSyncError:
            raise
        except EngineError as error:
            logger.warning("%s Restarting the engine once.", error)
            self.restart()
            return act()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _batch_key(request: GenerationRequest) -> tuple[object, ...]:
    return (request.member or "", request.prompt_ids, request.seed, request.temperature, request.max_tokens)


def model_len(config: EngineConfig, base: EngineBase) -> int:
    """Return the longest prompt plus response an engine must serve, in tokens.

    Raises:
        ConfigError: there is no model, or the settings ask for more than it can handle.
    """
    from transformers import AutoConfig

    try:
        settings = AutoConfig.from_pretrained(base.path).get_text_config()
    except (OSError, ValueError) as error:
        raise ConfigError(f"model.base.path: {base.path} is no model folder: {error}") from error
    limit: int = getattr(settings, "max_position_embeddings", None) or base.needed_len
    wanted = config.max_model_len
    if wanted is None:
        return min(base.needed_len, limit)
    if wanted > limit:
        raise ConfigError(
            f"data.engine.max_model_len must be at most {limit}, the longest text of {base.path}, got {wanted}"
        )
    return wanted


engines: Registry[Callable[[EngineConfig], Engine]] = Registry("engine")
"""Engines by the name that ``data.engine.name`` selects them with."""
