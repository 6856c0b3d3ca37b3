from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from torch import Tensor
from transformers import PreTrainedModel

from populora.config import AdapterConfig
from populora.errors import CheckpointError
from populora.population.bank import AdapterBank
from populora.population.lowrank import LowRank
from populora.rollouts.fingerprint import fingerprint

LoadBase = Callable[..., PreTrainedModel]
MakeBank = Callable[..., AdapterBank]
Forward = Callable[..., Tensor]
TOLERANCE = {torch.float32: {"atol": 1e-4, "rtol": 1e-5}, torch.bfloat16: {"atol": 0.1, "rtol": 0.05}}
NAMES = ("teacher-0", "teacher-1", "student-0")


def tokens() -> tuple[Tensor, Tensor]:
    """Two rows of different length, padded on the right."""
    ids = torch.randint(3, 250, (2, 9), generator=torch.Generator().manual_seed(4))
    mask = torch.ones_like(ids)
    mask[1, 6:] = 0
    return ids, mask


def test_members_start_at_the_base_with_factors_of_their_own(load_base: LoadBase, forward: Forward) -> None:
    config = AdapterConfig(rank=4, alpha=8.0)
    bank = AdapterBank(load_base(), NAMES, config, seed=1)
    other = AdapterBank(load_base(), ("student-0", "teacher-5", "teacher-0"), config, seed=1)
    reseeded = AdapterBank(load_base(), NAMES, config, seed=2)
    for path, update in bank.read("teacher-0").items():
        assert torch.equal(update.a, other.read("teacher-0")[path].a), "the order of members must not matter"
        assert not torch.equal(update.a, bank.read("teacher-1")[path].a)
        assert not torch.equal(update.a, reseeded.read("teacher-0")[path].a)
        assert torch.count_nonzero(update.b) == 0
        assert float(update.a.abs().max()) <= update.a.shape[1] ** -0.5
    ids, mask = tokens()
    expected = load_base().model(ids, mask).last_hidden_state
    hidden = forward(bank, ids, mask, ["teacher-0", "student-0"])
    torch.testing.assert_close(hidden[mask.bool()], expected[mask.bool()])


def test_adapted_modules_are_all_linear_projections_but_not_the_head(load_base: LoadBase) -> None:
    bank = AdapterBank(load_base(), NAMES, AdapterConfig(rank=4), seed=1)
    names = {path.rpartition(".")[2] for path in bank.read("teacher-0")}
    assert names == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
    assert len(bank.read("teacher-0")) == 14


def test_factors_are_float32_and_alone_trainable_on_a_bfloat16_base(load_base: LoadBase) -> None:
    bank = AdapterBank(load_base(torch.bfloat16), NAMES, AdapterConfig(rank=4), seed=1)
    trainable = {id(p) for p in bank.parameters() if p.requires_grad}
    assert trainable == {id(p) for name in NAMES for p in bank.parameters_of(name)}
    assert {p.dtype for name in NAMES for p in bank.parameters_of(name)} == {torch.float32}
    assert bank.head.dtype == torch.bfloat16


def test_read_and_write_round_trip_and_touch_one_member(make_bank: MakeBank) -> None:
    bank = make_bank()
    before = {name: bank.read(name) for name in NAMES}
    parameters = bank.parameters_of("teacher-1")
    bank.write("teacher-1", before["student-0"])
    assert all(a is b for a, b in zip(parameters, bank.parameters_of("teacher-1"), strict=True))
    for path, update in before["student-0"].items():
        assert torch.equal(bank.read("teacher-1")[path].a, update.a)
        assert torch.equal(bank.read("teacher-1")[path].b, update.b)
    for name in ("teacher-0", "student-0"):
        for path, update in before[name].items():
            assert torch.equal(bank.read(name)[path].a, update.a)
            assert torch.equal(bank.read(name)[path].b, update.b)


def test_reading_copies(make_bank: MakeBank) -> None:
    bank = make_bank()
    path, update = next(iter(bank.read("teacher-0").items()))
    update.a.zero_()
    assert torch.count_nonzero(bank.read("teacher-0")[path].a) > 0


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda u: LowRank(u.a[:3], u.b[:, :3]), r"shapes \(3, .*expected \(4, "),
        (lambda u: LowRank(u.a, u.b * float("nan")), "not finite"),
    ],
)
def test_what_does_not_fit_is_refused_whole(
    make_bank: MakeBank, spoil: Callable[[LowRank], LowRank], message: str
) -> None:
    bank = make_bank()
    before, adapter = bank.read("teacher-0"), bank.read("teacher-1")
    last = max(adapter)
    adapter[last] = spoil(adapter[last])
    with pytest.raises(ValueError, match=message):
        bank.write("teacher-0", adapter)
    assert all(torch.equal(bank.read("teacher-0")[path].a, update.a) for path, update in before.items())


def test_other_modules_and_unknown_members_are_refused(make_bank: MakeBank) -> None:
    bank = make_bank()
    adapter = bank.read("teacher-0")
    adapter["elsewhere"] = adapter.pop("model.layers.0.mlp.up_proj")
    with pytest.raises(ValueError, match=r"\['elsewhere', 'model.layers.0.mlp.up_proj'\]"):
        bank.write("teacher-0", adapter)
    with pytest.raises(ValueError, match="no adapter 'nobody' in the bank; known: teacher-0"):
        bank.read("nobody")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_peft_loads_the_export_and_gives_the_same_logits(
    make_bank: MakeBank, load_base: LoadBase, forward: Forward, tmp_path: Path, dtype: torch.dtype
) -> None:
    bank = make_bank(dtype)
    bank.export("student-0", tmp_path / "x", torch.float32)
    reference = PeftModel.from_pretrained(load_base(dtype), tmp_path / "x")
    ids, mask = tokens()
    hidden = forward(bank, ids, mask, ["student-0"] * 2)
    expected = reference(input_ids=ids, attention_mask=mask).logits
    logits = torch.nn.functional.linear(hidden, bank.head, bank.head_bias)
    torch.testing.assert_close(logits[mask.bool()], expected[mask.bool()], **TOLERANCE[dtype])
    plain = load_base(dtype)(input_ids=ids, attention_mask=mask).logits
    assert float((expected - plain).detach().abs().max()) > 0.1, "the adapter must matter"


def test_export_casts_and_load_restores(make_bank: MakeBank, tmp_path: Path) -> None:
    bank, other = make_bank(), make_bank()
    bank.export("teacher-0", tmp_path, torch.bfloat16)
    assert {t.dtype for t in load_file(tmp_path / "adapter_model.safetensors").values()} == {torch.bfloat16}
    untouched = other.read("teacher-0")
    other.load("student-0", tmp_path)
    for path, update in bank.read("teacher-0").items():
        assert torch.equal(other.read("student-0")[path].a, update.a.bfloat16().float())
        assert torch.equal(other.read("student-0")[path].b, update.b.bfloat16().float())
        assert torch.equal(other.read("teacher-0")[path].a, untouched[path].a)


def test_folders_that_do_not_fit_are_refused(
    make_bank: MakeBank, load_base: LoadBase, tmp_path: Path
) -> None:
    bank = make_bank()
    with pytest.raises(CheckpointError, match="cannot read the adapter folder"):
        bank.load("teacher-0", tmp_path / "missing")
    bank.export("teacher-0", tmp_path, torch.float32)
    rescaled = AdapterBank(load_base(), NAMES, AdapterConfig(rank=4, alpha=16.0), seed=1)
    with pytest.raises(CheckpointError, match=r"\(8\.0, 4\), this run \(16\.0, 4\)"):
        rescaled.load("teacher-0", tmp_path)
    narrower = AdapterBank(
        load_base(), NAMES, AdapterConfig(rank=4, alpha=8.0, target_modules=["q_proj"]), seed=1
    )
    with pytest.raises(CheckpointError, match="differs from the bank in its modules"):
        narrower.load("teacher-0", tmp_path)
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(CheckpointError, match="not the adapter_config"):
        bank.load("teacher-0", tmp_path)


def test_state_round_trips_exactly(make_bank: MakeBank) -> None:
    bank, other = make_bank(), make_bank()
    other.load_state("student-0", bank.state("teacher-0"))
    for path, update in bank.read("teacher-0").items():
        assert torch.equal(other.read("student-0")[path].b, update.b)
    config, tensors = bank.state("teacher-0")
    tensors.pop(next(iter(tensors)))
    with pytest.raises(CheckpointError, match="unpaired"):
        other.load_state("student-0", (config, tensors))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_fingerprint_is_that_of_the_served_factors(make_bank: MakeBank, dtype: torch.dtype) -> None:
    bank = make_bank()
    served = [(path, u.a.to(dtype), u.b.to(dtype) * 2.0) for path, u in bank.read("teacher-0").items()]
    before = bank.fingerprint("teacher-0", dtype)
    assert before == fingerprint(reversed(served))
    other = bank.fingerprint("teacher-1", dtype)
    bank.parameters_of("teacher-0")[-1].data[0, 0] += 1.0
    assert bank.fingerprint("teacher-0", dtype) != before
    assert bank.fingerprint("teacher-1", dtype) == other
