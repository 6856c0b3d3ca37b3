"""Trains the embedded base: ``python -m populora.embedded.train --out DIR``."""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import os
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from transformers import Qwen2Config, Qwen2ForCausalLM

from populora.embedded.data import Batch, batches
from populora.embedded.muon import Muon
from populora.embedded.tokenizer import build_tokenizer

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the trained weights.

    Attributes:
        tokens: Token budget, prompts included, padding excluded.
        batch_tokens: Tokens of a batch, padding included.
        hidden: Width of the model.
        inner: Width of its feed-forward layers.
        layers: Number of layers; attention heads are 32 wide.
        muon_lr: Learning rate of Muon on the hidden matrices; 0 leaves them to AdamW.
        adam_lr: Learning rate of AdamW on everything else.
        warmup: Share of the budget over which learning rates rise.
        seed: Seed of the data and of the initial weights.
    """

    tokens: int = 50_000_000
    batch_tokens: int = 4096
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
        num_attention_heads=recipe.hidden // 32,
        num_key_value_heads=recipe.hidden // 32,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return Qwen2ForCausalLM(config).float()


def build_optimizers(model: torch.nn.Module, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Muon for the hidden matrices, AdamW for the rest; AdamW for all where Muon is off."""
    named = list(model.named_parameters())
    matrices = [p for name, p in named if p.ndim == 2 and "embed" not in name and recipe.muon_lr]
    chosen = {id(p) for p in matrices}
    rest = [p for _, p in named if id(p) not in chosen]
    found: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(
            rest, lr=recipe.adam_lr, betas=(0.9, 0.95), weight_decay=0.01, fused=True
        )
    ]
    if matrices:
        found.append(
            Muon(matrices, lr=recipe.muon_lr, weight_decay=0.01)
        )
    return found


def response_loss(model: Any, ids: torch.Tensor, learn: torch.Tensor) -> torch.Tensor:
    """Summed cross-entropy over the tokens of the responses."""
    hidden = model.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
    wanted = learn[:, 1:]
    logits = model.lm_head(hidden[wanted])
    return functional.cross_entropy(logits, ids[:, 1:][wanted], reduction="sum")


class Gradients:
    """Computes gradients in threads that each take a share of a batch on one core.

    Small tensors gain little from threads inside each operation, and every such operation would
    wait for the slower core; here the threads meet once a step.
    """

    def __init__(self, model: Any, threads: int) -> None:
        self._model = model
        self._weights = list(model.parameters())
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads)
        torch.set_num_threads(1)

    def _share(self, share: tuple[torch.Tensor, torch.Tensor]) -> tuple[Any, float]:
        loss = response_loss(self._model, *share)
        return torch.autograd.grad(loss, self._weights), loss.item()

    def fill(self, batch: Batch) -> float:
        """Sets the gradients of the mean loss over a batch, clipped; returns the loss."""
        count = int(batch.learn[:, 1:].sum())
        shares = [
            (batch.ids[i :: self._threads], batch.learn[i :: self._threads])
            for i in range(min(self._threads, len(batch.ids)))
        ]
        results = list(self._pool.map(self._share, shares))
        for weight, *parts in zip(self._weights, *(r[0] for r in results), strict=True):
            weight.grad = torch.stack(parts).sum(0).div_(count)
        torch.nn.utils.clip_grad_norm_(self._weights, 1.0)
        return sum(r[1] for r in results) / count


def rate_factor(progress: float, warmup: float) -> float:
    """Linear warm-up, then linear decay to zero."""
    return min(progress / warmup, (1 - progress) / (1 - warmup), 1.0) if progress < 1 else 0.0


def save(model: Any, tokenizer: Any, folder: Path) -> None:
    """Writes a folder that transformers, PEFT and vLLM load, replacing it in one step."""
    building = folder.with_name(folder.name + ".part")
    shutil.rmtree(building, ignore_errors=True)
    model.save_pretrained(building)
    tokenizer.save_pretrained(building)
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(building, folder)


def train(recipe: Recipe, out: Path, threads: int = 2, save_every: float = 0.0) -> None:
    """Trains the base and writes it to ``out``.

    Args:
        recipe: Model, data and schedule.
        out: Folder to write.
        threads: Cores to use.
        save_every: Minutes between intermediate folders ``out-STEP``; 0 for none.
    """
    tokenizer = build_tokenizer()
    model = build_model(recipe, len(tokenizer), tokenizer)
    optimizers = build_optimizers(model, recipe)
    rates = [group["lr"] for optimizer in optimizers for group in optimizer.param_groups]
    logger.info("%d parameters", sum(p.numel() for p in model.parameters()))
    gradients = Gradients(model, threads)
    begun = saved = time.monotonic()
    seen, losses = 0, []
    stream = batches(tokenizer.backend_tokenizer, recipe.seed, recipe.tokens, recipe.batch_tokens)
    for step, batch in zip(itertools.count(1), stream, strict=False):
        factor = rate_factor(seen / recipe.tokens, recipe.warmup)
        groups = [group for optimizer in optimizers for group in optimizer.param_groups]
        for group, rate in zip(groups, rates, strict=True):
            group["lr"] = rate * factor
        losses.append(gradients.fill(batch))
        for optimizer in optimizers:
            optimizer.step()
        seen += batch.tokens
        if step % 100 == 0:
            speed = seen / (time.monotonic() - begun)
            mean = sum(losses[-100:]) / 100
            logger.info("step %d: %d tokens, loss %.4f, %.0f tokens/s", step, seen, mean, speed)
        if save_every and time.monotonic() - saved > 60 * save_every:
            saved = time.monotonic()
            save(model, tokenizer, out.with_name(f"{out.name}-{step}"))
    save(model, tokenizer, out)
    summary = asdict(recipe) | {
        "steps": len(losses),
        "tokens_seen": seen,
        "final_loss": sum(losses[-100:]) / len(losses[-100:]),
        "seconds": round(time.monotonic() - begun),
    }
    (out / "training.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    logger.info("%s", summary)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    default = Recipe()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--save-every", type=float, default=0.0, metavar="MINUTES")
    parser.add_argument("--threads", type=int, default=2)
    for name, value in asdict(default).items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(value), default=value)
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    recipe = Recipe(**{name: getattr(options, name) for name in asdict(default)})
    train(recipe, options.out, options.threads, options.save_every)


if __name__ == "__main__":
    main()
