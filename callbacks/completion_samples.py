"""Some responses of every few iterations, to read."""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import lightning as L
from typing_extensions import override

from populora.callbacks.run import log_folder, module_of
from populora.callbacks.samples import Sample, attempt_sample, markdown, proposal_sample
from populora.callbacks.tensorboard import log_text
from populora.errors import ConfigError
from populora.records import RolloutBatch
from populora.seeding import run_seed, stream


class CompletionSamples(L.Callback):
    """Writes sampled proposals and attempts to TensorBoard and to ``samples.jsonl`` in the log folder.

    Args:
        every: Iterations between two samplings; the first iteration is sampled as well.
        count: Proposals, and as many attempts, each time.

    Attributes:
        path: The file, once training has started.

    Raises:
        ConfigError: an argument is below 1.
    """

    def __init__(self, every: int = 5, count: int = 2) -> None:
        for name, value in (("every", every), ("count", count)):
            if value < 1:
                raise ConfigError(f"CompletionSamples({name}={value}): expected at least 1")
        self._every = every
        self._count = count
        self.path: Path | None = None

    @override
    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self.path = log_folder(trainer) / "samples.jsonl"
        if trainer.is_global_zero:
            _drop_after(self.path, module_of(trainer).iteration)

    @override
    def on_train_batch_end(
        self,
        trainer: L.Trainer,
        pl_module: L.LightningModule,
        outputs: Any,
        batch: RolloutBatch,
        batch_idx: int,
    ) -> None:
        due = batch.iteration == 0 or (batch.iteration + 1) % self._every == 0
        if due and trainer.is_global_zero and self.path is not None:
            self._write(trainer, batch, self.path)

    def _write(self, trainer: L.Trainer, batch: RolloutBatch, path: Path) -> None:
        samples = list(self._draw(trainer, batch))
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="ascii") as file:
            file.writelines(json.dumps(asdict(sample)) + "\n" for sample in samples)
        for kind in ("proposal", "attempt"):
            text = markdown(sample for sample in samples if sample.kind == kind)
            log_text(trainer, f"samples/{kind}s", text, batch.iteration + 1)

    def _draw(self, trainer: L.Trainer, batch: RolloutBatch) -> Iterator[Sample]:
        tokenizer, step = module_of(trainer).tokenizer, batch.iteration + 1
        rng = stream(run_seed(), "samples", batch.iteration)
        for proposal in rng.sample(batch.proposals, min(self._count, len(batch.proposals))):
            yield proposal_sample(proposal, tokenizer.decode(proposal.prompt_ids), step)
        for attempt in rng.sample(batch.attempts, min(self._count, len(batch.attempts))):
            yield attempt_sample(attempt, tokenizer.decode(attempt.prompt_ids), step)


def _drop_after(path: Path, iteration: int) -> None:
    """Drop samples that a run wrote beyond the iteration it now goes on from, and a line cut short by its death."""
    if not path.exists():
        return
    kept = [line for line in path.read_text(encoding="ascii").splitlines() if _iteration(line) <= iteration]
    fresh = path.with_name(f".{path.name}")
    fresh.write_text("".join(f"{line}\n" for line in kept), encoding="ascii")
    fresh.replace(path)


def _iteration(line: str) -> float:
    try:
        return float(json.loads(line)["iteration"])
    except ValueError:
        return math.inf
