"""Trains the embedded base: ``python -m populora.embedded.train --out DIR``."""

import argparse
import json
import logging
import math
import time
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from populora.embedded.data import Batch, Course, prefetched
from populora.embedded.export import load, save
from populora.embedded.forward import HEAD, response_loss
from populora.embedded.muon import Muon
from populora.embedded.tokenizer import build_tokenizer

logger = logging.getLogger(__name__)

_LOG_EVERY = 100


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the trained weights.

    Attributes:
        tokens: Token budget of the first course, prompts included, padding excluded.
        habit_tokens: Token budget of the second, in which some problems are answered without a thought.
        habit_haste: Their share of the solved problems.
        habit_rate: Learning rates of the second course, as a share of those of the first.
        batch_tokens: Tokens of a batch, padding included.
        share_tokens: Tokens of a batch whose gradients are computed at once.
        hidden: Width of the model.
        inner: Width of its feed-forward layers.
        layers: Number of layers; attention heads are 32 wide.
        muon_lr: Learning rate of Muon on the hidden matrices; 0 leaves them to AdamW.
        adam_lr: Learning rate of AdamW on everything else.
        warmup: Share of the budget over which learning rates rise.
        seed: Seed of the data and of the initial weights.
    """

    tokens: int = 18_000_000
    habit_tokens: int = 1_500_000
    habit_haste: float = 0.2
    habit_rate: float = 0.1
    batch_tokens: int = 6144
    share_tokens: int = 2048
    hidden: int = 128
    inner: int = 384
    layers: int = 4
    muon_lr: float = 5e-3
    adam_lr: float = 3e-3
    warmup: float = 0.02
    seed: int = 0


def build_model(recipe: Recipe, vocabulary: int, tokenizer: Any) -> Qwen2ForCausalLM:
    """Creates the model with fresh weights."""
    torch.manual_seed(recipe.seed)
    config = Qwen2Config(
        vocab_size=vocabulary,
        hidden_size=recipe.hidden,
        intermediate_size=recipe.inner,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.hidden // HEAD,
        num_key_value_heads=recipe.hidden // HEAD,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return Qwen2ForCausalLM(config).float()


def build_optimizers(model: torch.nn.Module, recipe: Recipe, pool: Executor) -> list[torch.optim.Optimizer]:
    """Muon for the hidden matrices, AdamW for the rest; AdamW for all where Muon is off."""
    named = list(model.named_parameters())
    matrices = [p for name, p in named if p.ndim == 2 and "embed" not in name and recipe.muon_lr]
    chosen = {id(p) for p in matrices}
    rest = [p for _, p in named if id(p) not in chosen]
    found: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(rest, lr=recipe.adam_lr, betas=(0.9, 0.95), weight_decay=0.01, fused=True)
    ]
    if matrices:
        found.append(Muon(matrices, recipe.muon_lr, weight_decay=0.01, apply=pool.map))
    return found


class Gradients:
    """Computes gradients by shares of a batch, small enough for the cache, in threads of one core each.

    Small tensors gain little from threads inside each operation; here the threads meet once a step.
    """

    def __init__(self, model: Any, pool: Executor, threads: int, share_tokens: int) -> None:
        self._weights = list(model.parameters())
        self._loss = response_loss(model)
        self._threads = threads
        self._share_tokens = share_tokens
        self._pool = pool
        torch.set_num_threads(1)

    def _share(self, share: Batch) -> tuple[Any, float]:
        wanted = share.learn[:, 1:]
        positions = wanted.flatten().nonzero()[:, 0]
        loss = self._loss(share.ids[:, :-1].contiguous(), positions, share.ids[:, 1:][wanted])
        return torch.autograd.grad(loss, self._weights), loss.item()

    def fill(self, batch: Batch) -> float:
        """Sets the gradients of the mean loss over a batch, clipped; returns the loss."""
        count = int(batch.learn[:, 1:].sum())
        shares = batch.split(
            self._threads * math.ceil(batch.ids.numel() / self._threads / self._share_tokens)
        )
        results = list(self._pool.map(self._share, shares))
        for weight, *parts in zip(self._weights, *(r[0] for r in results), strict=True):
            weight.grad = torch.stack(parts).sum(0).div_(count)
        torch.nn.utils.clip_grad_norm_(self._weights, 1.0)
        return sum(r[1] for r in results) / count


def rate_factor(progress: float, warmup: float) -> float:
    """Linear warm-up, then linear decay to zero."""
    return min(progress / warmup, (1 - progress) / (1 - warmup), 1.0) if progress < 1 else 0.0


class Trainer:
    """Trains the base, course by course.

    Args:
        recipe: Model, data and schedule.
        threads: Cores to use.
        start: Folder of a trained base to go on from; none for fresh weights.
    """

    def __init__(self, recipe: Recipe, threads: int = 2, start: Path | None = None) -> None:
        self.tokenizer = build_tokenizer()
        self.model = build_model(recipe, len(self.tokenizer), self.tokenizer)
        if start is not None:
            load(self.model, start)
        self.losses: list[float] = []
        self.seen = 0
        self._recipe = recipe
        self._pool = ThreadPoolExecutor(threads)
        self._gradients = Gradients(self.model, self._pool, threads, recipe.share_tokens)
        logger.info("%d parameters", sum(p.numel() for p in self.model.parameters()))

    def study(self, course: Course, rate: float) -> None:
        """Trains on one course with optimizers of its own.

        Args:
            course: What is taught.
            rate: Highest learning rates, as a share of the recipe's.
        """
        recipe, begun, first = self._recipe, time.monotonic(), self.seen
        optimizers = build_optimizers(self.model, recipe, self._pool)
        rates = [rate * group["lr"] for optimizer in optimizers for group in optimizer.param_groups]
        for batch in prefetched(self.tokenizer.backend_tokenizer, course, recipe.batch_tokens):
            progress = (self.seen - first) / course.tokens
            _set_rates(optimizers, rates, rate_factor(progress, recipe.warmup))
            self.losses.append(self._gradients.fill(batch))
            for optimizer in optimizers:
                optimizer.step()
            self.seen += batch.tokens
            if len(self.losses) % _LOG_EVERY == 0:
                speed = (self.seen - first) / (time.monotonic() - begun)
                loss = fmean(self.losses[-_LOG_EVERY:])
                logger.info(
                    "step %d: %d tokens, loss %.4f, %.0f tokens/s", len(self.losses), self.seen, loss, speed
                )


def train(recipe: Recipe, out: Path, threads: int = 2, start: Path | None = None) -> None:
    """Trains the base and writes it to ``out``.

    Args:
        recipe: Model, data and schedule.
        out: Folder to write.
        threads: Cores to use.
        start: Folder that the first course was written to, to take the second alone.
    """
    begun = time.monotonic()
    trainer = Trainer(recipe, threads, start)
    if start is None:
        trainer.study(Course(recipe.tokens, recipe.seed, short_first=True), rate=1.0)
        save(trainer.model, trainer.tokenizer, out.with_name(f"{out.name}-first"))
    trainer.study(
        Course(recipe.habit_tokens, recipe.seed + 1, haste=recipe.habit_haste), rate=recipe.habit_rate
    )
    save(trainer.model, trainer.tokenizer, out)
    summary = asdict(recipe) | {
        "steps": len(trainer.losses),
        "tokens_seen": trainer.seen,
        "final_loss": round(fmean(trainer.losses[-_LOG_EVERY:]), 4),
        "seconds": round(time.monotonic() - begun),
    }
    (out / "training.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    logger.info("%s", summary)


def _set_rates(optimizers: Sequence[torch.optim.Optimizer], rates: Sequence[float], factor: float) -> None:
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    for group, rate in zip(groups, rates, strict=True):
        group["lr"] = rate * factor


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    default = Recipe()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--start", type=Path, help="folder of the first course, to take the second alone")
    parser.add_argument("--threads", type=int, default=2)
    for name, value in asdict(default).items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(value), default=value)
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    recipe = Recipe(**{name: getattr(options, name) for name in asdict(default)})
    train(recipe, options.out, options.threads, options.start)


if __name__ == "__main__":
    main()
