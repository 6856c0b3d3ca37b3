"""Writing the trained model so that every library loads it, tokenizer included."""

import os
import shutil
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2ForCausalLM


def as_llama(model: Qwen2ForCausalLM) -> LlamaForCausalLM:
    """Return the same function as a Llama model.

    Qwen2 is Llama with biases on queries, keys and values. Llama's switch for biases adds one to the output
    projection too, which is zero here. The reason to convert: transformers 5 loads every model of type ``qwen2``
    with Qwen2's own tokenizer, whatever its folder says; it leaves the tokenizer of a Llama alone.
    """
    shape = model.config
    config = LlamaConfig(
        vocab_size=shape.vocab_size,
        hidden_size=shape.hidden_size,
        intermediate_size=shape.intermediate_size,
        num_hidden_layers=shape.num_hidden_layers,
        num_attention_heads=shape.num_attention_heads,
        num_key_value_heads=shape.num_key_value_heads,
        max_position_embeddings=shape.max_position_embeddings,
        rms_norm_eps=shape.rms_norm_eps,
        rope_parameters=shape.rope_parameters,
        tie_word_embeddings=True,
        attention_bias=True,
        bos_token_id=None,
        eos_token_id=shape.eos_token_id,
        pad_token_id=shape.pad_token_id,
    )
    llama = LlamaForCausalLM(config).float()
    zeros = {
        f"model.layers.{i}.self_attn.o_proj.bias": torch.zeros(shape.hidden_size)
        for i in range(shape.num_hidden_layers)
    }
    llama.load_state_dict({**model.state_dict(), **zeros})
    return llama


def save(model: Qwen2ForCausalLM, tokenizer: Any, folder: Path) -> None:
    """Write a folder that transformers, PEFT and vLLM load, replacing it in one step."""
    building = folder.with_name(folder.name + ".part")
    shutil.rmtree(building, ignore_errors=True)
    as_llama(model).save_pretrained(building)
    tokenizer.save_pretrained(building)
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(building, folder)


def load(model: Qwen2ForCausalLM, folder: Path) -> None:
    """Read the weights of a folder that :func:`save` wrote."""
    llama = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
    model.load_state_dict({k: v for k, v in llama.state_dict().items() if not k.endswith("o_proj.bias")})
