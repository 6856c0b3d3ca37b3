"""From token ids to the text that is parsed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TAGS = ("<think>", "</think>", "<answer>", "</answer>")
"""Parts of a response; they stay in the text even where a tokenizer declares them special."""


class Decoder:
    """Decodes responses without special tokens."""

    def __init__(self, tokenizer: "PreTrainedTokenizerBase") -> None:
        self._tokenizer = tokenizer
        self._hidden = {
            index
            for index, token in tokenizer.added_tokens_decoder.items()
            if token.special and token.content not in TAGS
        }

    def __call__(self, responses: Sequence[Sequence[int]]) -> list[str]:
        """Return the text of each sequence of token ids."""
        shown = [[token for token in response if token not in self._hidden] for response in responses]
        texts: list[str] = self._tokenizer.batch_decode(
            shown, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return texts
