"""Batches of training episodes, in an order that depends on the seed alone."""

import multiprocessing
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from tokenizers import Tokenizer

from populora.embedded.episodes import random_episode
from populora.embedded.programs import STEP_WEIGHTS
from populora.embedded.tokenizer import chat_prompt, chat_response

MAX_LENGTH = 340
_POOL_BATCHES = 24
_FEWEST = 8
_EASY_WEIGHTS = (0.5, 0.3, 0.12, 0.05, 0.02, 0.005, 0.003, 0.002)


@dataclass(frozen=True)
class Course:
    """What is taught in one stretch of training.

    Attributes:
        tokens: Token budget, padding excluded.
        seed: Seed of the episodes and of the order of batches.
        short_first: Whether short programs come first.
        haste: Share of the solved problems that are answered without a thought.
    """

    tokens: int
    seed: int
    short_first: bool = False
    haste: float = 0.0

    def weights(self, progress: float) -> tuple[float, ...]:
        """Relative frequencies of programs of 1, 2, ... statements."""
        return curriculum(progress) if self.short_first else STEP_WEIGHTS


@dataclass(frozen=True, slots=True)
class Batch:
    """Right-padded sequences.

    Attributes:
        ids: Token ids, sequences by positions.
        learn: Mask of the tokens whose prediction is learnt.
        tokens: Number of tokens that are not padding.
    """

    ids: torch.Tensor
    learn: torch.Tensor
    tokens: int

    def split(self, count: int) -> list["Batch"]:
        """Deals the sequences to at most ``count`` batches."""
        count = min(count, len(self.ids))
        return [Batch(self.ids[i::count], self.learn[i::count], 0) for i in range(count)]


def curriculum(progress: float, until: float = 0.25) -> tuple[float, ...]:
    """Mixes step weights: short programs first, the final weights from ``until`` on."""
    share = min(1.0, progress / until)
    return tuple(
        (1 - share) * easy + share * final for easy, final in zip(_EASY_WEIGHTS, STEP_WEIGHTS, strict=True)
    )


def batches(tokenizer: Any, course: Course, per_batch: int) -> Iterator[Batch]:
    """Yields batches of about ``per_batch`` tokens, padding included, until the course's budget is used up."""
    rng = random.Random(course.seed)
    given = 0
    while given < course.tokens:
        weights = course.weights(given / course.tokens)
        for chunk in _pool(rng, tokenizer, weights, course.haste, per_batch):
            batch = _collate(chunk)
            given += batch.tokens
            yield batch
            if given >= course.tokens:
                return


def prefetched(tokenizer: Any, course: Course, per_batch: int) -> Iterator[Batch]:
    """Yields what :func:`batches` yields, made ahead of time in another process."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue(maxsize=4 * _POOL_BATCHES)
    arguments = (queue, tokenizer.to_str(), course, per_batch)
    process = context.Process(target=_produce, args=arguments, daemon=True)
    process.start()
    while (item := queue.get()) is not None:
        ids, learn, tokens = item
        yield Batch(torch.from_numpy(ids), torch.from_numpy(learn), tokens)
    process.join()


def _produce(queue: Any, tokenizer: str, course: Course, per_batch: int) -> None:
    for batch in batches(Tokenizer.from_str(tokenizer), course, per_batch):
        queue.put((batch.ids.numpy(), batch.learn.numpy(), batch.tokens))
    queue.put(None)


Encoded = tuple[list[int], list[int]]


def _pool(
    rng: random.Random, tokenizer: Any, weights: Sequence[float], haste: float, per_batch: int
) -> list[list[Encoded]]:
    encoded: list[Encoded] = []
    size = 0
    while size < per_batch * _POOL_BATCHES:
        item = random_episode(rng, weights, haste)
        pair = (
            tokenizer.encode(chat_prompt(item.prompt)).ids,
            tokenizer.encode(chat_response(item.response)).ids,
        )
        if _length(pair) <= MAX_LENGTH:
            encoded.append(pair)
            size += _length(pair)
    encoded.sort(key=_length)
    chunks: list[list[Encoded]] = [[]]
    for pair in encoded:
        if (len(chunks[-1]) + 1) * _length(pair) > per_batch:
            chunks.append([])
        chunks[-1].append(pair)
    full = [chunk for chunk in chunks if len(chunk) >= _FEWEST]
    rng.shuffle(full)
    return full


def _length(pair: Encoded) -> int:
    return len(pair[0]) + len(pair[1])


def _collate(chunk: Sequence[Encoded]) -> Batch:
    width = max(map(_length, chunk))
    ids = torch.zeros(len(chunk), width, dtype=torch.long)
    learn = torch.zeros(len(chunk), width, dtype=torch.bool)
    for row, (prompt, response) in enumerate(chunk):
        end = len(prompt) + len(response)
        ids[row, :end] = torch.tensor(prompt + response)
        learn[row, len(prompt) : end] = True
    return Batch(ids, learn, sum(map(_length, chunk)))
