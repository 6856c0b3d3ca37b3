"""The LightningDataModule: its batches are iterations, played with the engine and the verifier."""

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

import lightning as L
from typing_extensions import override

from populora.base import EMBEDDED
from populora.config import EngineConfig, RolloutConfig, VerifierConfig
from populora.embedded import starting_problems
from populora.errors import ConfigError
from populora.records import RolloutBatch
from populora.rollouts import scripted, vllm_engine  # noqa: F401  (register their engines)
from populora.rollouts.collector import Collector
from populora.rollouts.engine import PROMPT_ROOM, Engine, EngineBase, engines
from populora.rollouts.proposing import Proposer
from populora.rollouts.solving import Answer, Question, Sampling, Solver, StageListener
from populora.rollouts.sync import AdapterSync
from populora.seeding import run_seed
from populora.tasks import configured, seed_problems
from populora.tasks.buffer import ProblemBuffer
from populora.verifier import Verifier
from populora.watchdog import Watchdog

if TYPE_CHECKING:
    from populora.module import PopuLoRAModule

logger = logging.getLogger(__name__)


@runtime_checkable
class LongResponses(Protocol):
    """A callback that has responses generated which may be longer than those of training."""

    @property
    def longest_response(self) -> int:
        """Tokens of the longest one."""


class RolloutDataModule(L.LightningDataModule):
    """Makes each training batch by playing one iteration with the current adapters.

    Args:
        iterations: Length of the run.
        rollout: What each match does in one iteration.
        engine: Where responses are generated.
        verifier: Limits of the sandbox.

    Attributes:
        stage_listener: Told of the progress within an iteration.

    Raises:
        ConfigError: a task or engine of that name does not exist.
    """

    def __init__(
        self,
        iterations: int = 100,
        rollout: RolloutConfig = RolloutConfig(),
        engine: EngineConfig = EngineConfig(),
        verifier: VerifierConfig = VerifierConfig(),
    ) -> None:
        super().__init__()
        if iterations < 1:
            raise ConfigError(f"data.iterations must be at least 1, got {iterations}")
        self.tasks = configured(rollout)
        self.iterations = iterations
        self.rollout = rollout
        self.buffer = ProblemBuffer(rollout.buffer_capacity)
        self.engine: Engine = engines[engine.name](engine)
        self.verifier = Verifier(verifier, seed=run_seed())
        self.stage_listener: StageListener | None = None
        self._sync: AdapterSync | None = None
        self._watchdog = Watchdog()

    @property
    def module(self) -> "PopuLoRAModule":
        """The module this datamodule plays with."""
        if self.trainer is None:
            raise RuntimeError(
                "RolloutDataModule needs a Trainer: pass it to trainer.fit or trainer.validate"
            )
        return cast("PopuLoRAModule", self.trainer.lightning_module)

    @override
    def setup(self, stage: str) -> None:
        """Start engine and verifier.

        Raises:
            ConfigError: more than one process was asked for.
            EngineError: the engine does not start.
        """
        if self._sync is not None:
            return
        module = self.module
        if module.trainer.world_size > 1:
            raise ConfigError(
                f"trainer.devices × trainer.num_nodes must be 1, got {module.trainer.world_size}: trainer and "
                "engine share one device. Larger bases need a larger device or a smaller model.base.dtype"
            )
        prompts = module.prompts
        evaluated = (c.longest_response for c in module.trainer.callbacks if isinstance(c, LongResponses))  # type: ignore[attr-defined]
        longest = max(self.rollout.max_proposal_tokens, self.rollout.max_attempt_tokens, *evaluated)
        self._watchdog.start("the engine's start")
        logger.info(
            "Starting %s with %s and %d adapters; this can take minutes.",
            self.engine.config.name,
            module.base.path,
            len(module.population.members),
        )
        self.engine.start(
            EngineBase(
                path=module.base_folder,
                dtype=module.weight_dtype,
                rank=module.adapter.rank,
                target_modules=module.adapter.target_modules,
                live_adapters=len(module.population.members),
                needed_len=longest + PROMPT_ROOM,
            )
        )
        self.verifier.start()
        if not len(self.buffer):
            self.buffer.add(starting_problems() if module.base.path == EMBEDDED else seed_problems())
        self._sync = AdapterSync(self.engine, module.weight_dtype)
        self._proposer = Proposer(self.rollout, self.engine, self.verifier, prompts, self.tasks)
        self._solver = Solver(self.engine, self.verifier, prompts, self.tasks)
        self._collector = Collector(self.rollout, module.rewards, self._proposer, self._solver, run_seed())

    @override
    def teardown(self, stage: str) -> None:
        if self._sync is not None:
            self._sync.close()
        self._sync = None
        self.engine.close()
        self.verifier.close()
        self._watchdog.stop()

    @override
    def on_exception(self, exception: BaseException) -> None:
        """Lightning tears nothing down after an error."""
        self.teardown("")

    @override
    def train_dataloader(self) -> "RolloutLoader":
        return RolloutLoader(self)

    @override
    def val_dataloader(self) -> list[int]:
        """One empty batch for ``validate``, where callbacks evaluate; none during ``fit``."""
        return [0] if self.module.trainer.validating else []

    @override
    def transfer_batch_to_device(self, batch: Any, device: Any, dataloader_idx: int) -> Any:
        return batch

    @override
    def state_dict(self) -> dict[str, Any]:
        return {"buffer": self.buffer.state_dict()}

    @override
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.buffer.load_state_dict(state_dict["buffer"])

    def collect(self, iteration: int) -> RolloutBatch:
        """Play one iteration with the present adapters; changes nothing that a checkpoint holds.

        Raises:
            EngineError: the engine failed twice.
        """
        return self.engine.retry(lambda: self._play(iteration))

    def remember(self, batch: RolloutBatch) -> None:
        """Put the new problems of an iteration into the buffer."""
        self.buffer.add(batch.new_problems)

    def _play(self, iteration: int) -> RolloutBatch:
        start = time.perf_counter()
        self.synchronise()
        seconds = time.perf_counter() - start
        batch = self._collector.collect(iteration, self.module.population, self.buffer, self.tell)
        return replace(batch, timings=replace(batch.timings, sync=seconds))

    def synchronise(self) -> None:
        """Give the engine every adapter that changed, and check that it holds it.

        Raises:
            AdapterSyncError: the engine holds other weights than the trainer.
        """
        if self._sync is None or self.module.bank is None:
            raise RuntimeError("setup and configure_model must run before adapters are synchronised")
        self.tell("sync", 0, 1)
        self._sync(self.module.bank, self.module.population.members)

    def solve(self, questions: Sequence[Question], sampling: Sampling) -> list[tuple[Answer, ...]]:
        """Let members answer problems with their present weights, outside of training."""

        def answer() -> list[tuple[Answer, ...]]:
            self.synchronise()
            return self._solver.solve(questions, sampling, self.tell)

        return self.engine.retry(answer)

    def reserve(self, programs: frozenset[str]) -> None:
        """Keep programs of an evaluation set out of training: a proposal that repeats one is invalid."""
        self._proposer.reserved |= programs

    def tell(self, stage: str, done: int, total: int) -> None:
        """Pass progress within an iteration on to the watchdog, and to the listener if there is one."""
        self._watchdog.note(f"{stage} ({done:,} of {total:,}) in iteration {self.module.iteration + 1}")
        if self.stage_listener is not None:
            self.stage_listener(stage, done, total)


class RolloutLoader:
    """The iterations still to be played, as a sized iterable: a length keeps Lightning from fetching ahead."""

    def __init__(self, datamodule: RolloutDataModule) -> None:
        self._datamodule = datamodule

    def __len__(self) -> int:
        return self._datamodule.iterations

    def __iter__(self) -> Iterator[RolloutBatch]:
        for iteration in range(self._datamodule.module.iteration, self._datamodule.iterations):
            yield self._datamodule.collect(iteration)

    def state_dict(self) -> dict[str, int]:
        """Return what Lightning stores of the loader; the module's own counter is what counts."""
        return {"iteration": self._datamodule.module.iteration}

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        """Accept the stored state; iteration starts from the module's counter."""
