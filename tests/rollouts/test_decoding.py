"""Text of responses."""

from pathlib import Path

from transformers import AutoTokenizer

from populora.rollouts.decoding import Decoder


def test_special_tokens_go_and_tags_stay(tiny_base: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_base)
    tokenizer.add_tokens(["<think>"], special_tokens=True)
    ids = tokenizer.encode("<|im_start|><think>é\n</answer> x<|im_end|>", add_special_tokens=False)
    assert tokenizer.decode(ids, skip_special_tokens=True) == "é\n</answer> x"
    assert Decoder(tokenizer)([ids, []]) == ["<think>é\n</answer> x", ""]
