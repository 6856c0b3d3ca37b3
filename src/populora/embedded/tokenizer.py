"""The tokenizer of the embedded base: byte-level BPE with single digits and capitals."""

import random
import re
from typing import Any

from populora.embedded.episodes import Episode, random_episode

VOCABULARY = 400
PAD, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
TAGS = ("<think>", "</think>", "<answer>", "</answer>")
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
_PIECES = (
    r"```[a-z]*\n?"  # a fence; what precedes a message in a chat never merges with it
    r"| ?[a-z]{2,} ?|[a-z]"  # a word with its spaces; a variable alone
    r"|[A-Z]|[0-9]"
    r"|\n *| ?[^\sA-Za-z0-9`]+ ?|\s+|`"
)

_MARKUP = re.compile("|".join(map(re.escape, (START, END, *TAGS))))


def chat_prompt(prompt: str) -> str:
    """Writes a prompt as the chat template does, up to the response."""
    return f"{START}user\n{prompt}{END}\n{START}assistant\n"


def chat_response(response: str) -> str:
    """Writes a response as the chat template does."""
    return f"{response}{END}\n"


def episode_text(episode: Episode) -> str:
    """Writes a whole episode as the chat template does."""
    return chat_prompt(episode.prompt) + chat_response(episode.response)


def build_tokenizer(seed: int = 0, episodes: int = 6000) -> Any:
    """Trains the tokenizer on generated episodes.

    Digits and capitals, the letters of strings, always stay tokens of their own.

    Returns:
        A ``PreTrainedTokenizerFast``.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(TAGS),
        special_tokens=[PAD, START, END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    rng = random.Random(seed)
    texts = (part for _ in range(episodes) for part in _plain_parts(random_episode(rng)))
    core.train_from_iterator(texts, trainer)
    core.add_tokens([AddedToken(tag, normalized=False, special=False) for tag in TAGS])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token=END,
        pad_token=PAD,
        clean_up_tokenization_spaces=False,
        model_max_length=1024,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def _plain_parts(episode: Episode) -> list[str]:
    return _MARKUP.split(episode_text(episode))
