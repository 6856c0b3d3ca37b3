"""The digest of an adapter, and what the engine holds of it."""

import hashlib

import pytest
import torch
from torch import Tensor

from populora.rollouts.fingerprint import as_served, fingerprint, module_path


def _factors(dtype: torch.dtype = torch.float32) -> list[tuple[str, Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(0)
    return [
        (
            name,
            torch.randn(2, 3, generator=generator).to(dtype),
            torch.randn(5, 2, generator=generator).to(dtype),
        )
        for name in ("model.layers.0.q_proj", "model.layers.1.q_proj")
    ]


def test_equals_a_hash_of_names_types_shapes_and_bytes() -> None:
    expected = hashlib.blake2b(digest_size=16)
    for name, a, b in _factors():
        expected.update(f"{name} torch.float32 (2, 3)".encode() + a.numpy().tobytes())
        expected.update(f"{name} torch.float32 (5, 2)".encode() + b.numpy().tobytes())
    assert fingerprint(_factors()) == expected.hexdigest()


def test_neither_order_nor_memory_layout_matters() -> None:
    strided = [(name, a.T.contiguous().T, b.T.contiguous().T) for name, a, b in reversed(_factors())]
    assert fingerprint(strided) == fingerprint(_factors())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_last_bit_of_one_value_matters(dtype: torch.dtype) -> None:
    changed = _factors(dtype)
    value = changed[1][2][4, 1]
    changed[1][2][4, 1] = torch.nextafter(value, torch.tensor(9.0, dtype=dtype))
    assert fingerprint(changed) != fingerprint(_factors(dtype))


def test_modules_that_change_places_matter() -> None:
    (first, *one), (second, *two) = _factors()
    assert fingerprint([(first, *two), (second, *one)]) != fingerprint(_factors())


def test_the_scale_is_folded_into_b_in_the_engines_type() -> None:
    _, a, b = _factors()[0]
    served_a, served_b = as_served(a, b, 3.0, torch.bfloat16)
    assert torch.equal(served_a, a.to(torch.bfloat16))
    rounded_twice = (b.to(torch.bfloat16).float() * 3.0).to(torch.bfloat16)
    assert torch.equal(served_b, rounded_twice)
    assert not torch.equal(served_b, (b * 3.0).to(torch.bfloat16))


def test_module_path_drops_what_peft_adds() -> None:
    key = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"
    assert module_path(key) == "model.layers.0.self_attn.q_proj"
