"""The mixed-batch forward pass against PEFT's own, one adapter at a time."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from populora.config import AdapterConfig
from populora.errors import ConfigError
from populora.population.bank import AdapterBank
from populora.population.layout import Bundle, Segment, lay_out
from populora.population.routing import Router

LoadBase = Callable[..., PreTrainedModel]
MakeBank = Callable[..., AdapterBank]
Forward = Callable[..., Tensor]
ROWS: tuple[str | None, ...] = ("student-0", None, "teacher-0", "student-0", None, "teacher-0")


def tokens(rows: int = len(ROWS), shared: int = 0) -> tuple[Tensor, Tensor]:
    """Rows of different length, padded on the right; the first ``shared`` tokens of all are equal."""
    ids = torch.randint(3, 250, (rows, 11), generator=torch.Generator().manual_seed(4))
    ids[:, :shared] = ids[0, :shared]
    mask = torch.ones_like(ids)
    for row in range(rows):
        mask[row, 11 - row :] = 0
    return ids, mask


def objective(hidden: Tensor, mask: Tensor) -> Tensor:
    """A random linear function of the hidden states of real tokens."""
    weights = torch.randn(hidden.shape, generator=torch.Generator().manual_seed(5))
    return (hidden.float() * weights * mask[..., None]).sum()


class Reference:
    """PEFT with the bank's adapters, run row by row through its public interface."""

    def __init__(self, bank: AdapterBank, base: PreTrainedModel, folder: Path) -> None:
        for name in bank.names:
            bank.export(name, folder / name, torch.float32)
        self.model = PeftModel.from_pretrained(base, folder / bank.names[0], bank.names[0], is_trainable=True)
        for name in bank.names[1:]:
            self.model.load_adapter(folder / name, name, is_trainable=True)

    def run(self, ids: Tensor, mask: Tensor, adapters: Sequence[str | None]) -> Tensor:
        """Return the hidden states; add the gradients of the objective, row by row.

        Each row's backward pass comes before the next ``set_adapter``, which freezes other adapters.
        """
        hidden = torch.stack([self._row(ids[i], mask[i], name) for i, name in enumerate(adapters)])
        leaf = hidden.clone().requires_grad_()
        objective(leaf, mask).backward()
        for i, name in enumerate(adapters):
            if name is not None:
                self._row(ids[i], mask[i], name, leaf.grad[i])
        return hidden

    def _row(self, ids: Tensor, mask: Tensor, name: str | None, upstream: Tensor | None = None) -> Tensor:
        decoder = self.model.get_base_model().model
        if name is None:
            with torch.no_grad(), self.model.disable_adapter():
                return decoder(ids[None], mask[None]).last_hidden_state[0]
        self.model.set_adapter(name)
        hidden = decoder(ids[None], mask[None]).last_hidden_state[0]
        if upstream is not None:
            hidden.backward(upstream)
        return hidden.detach()

    def gradients(self, name: str) -> dict[str, Tensor]:
        return {
            path.replace(f".{name}.", "."): parameter.grad
            for path, parameter in self.model.named_parameters()
            if f".{name}." in path
        }


def gradients(bank: AdapterBank, name: str) -> dict[str, Tensor]:
    factors = {"a": "lora_A.weight", "b": "lora_B.weight"}
    found = {}
    for label, parameter in bank.named_factors(name):
        path, _, factor = label.rpartition(".")
        found[f"base_model.model.{path}.{factors[factor]}"] = parameter.grad
    return found


def assert_same_gradients(bank: AdapterBank, reference: Reference) -> None:
    for name in ("student-0", "teacher-0"):
        expected, found = reference.gradients(name), gradients(bank, name)
        assert expected.keys() == found.keys()
        for path, gradient in expected.items():
            scale = float(gradient.abs().max())
            torch.testing.assert_close(found[path], gradient, atol=1e-5 * scale, rtol=1e-5)


@pytest.mark.parametrize("shared", [0, 4])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("checkpointing", ["off", "before the bank", "through the bank"])
def test_mixed_batch_equals_peft_one_adapter_at_a_time(
    make_bank: MakeBank,
    load_base: LoadBase,
    forward: Forward,
    tmp_path: Path,
    checkpointing: str,
    training: bool,
    shared: int,
) -> None:
    bank = make_bank()
    reference = Reference(bank, load_base(), tmp_path)
    if checkpointing == "before the bank":
        base = load_base()
        base.gradient_checkpointing_enable()
        other = AdapterBank(base, bank.names, bank.config, seed=0)
        for name in bank.names:
            other.write(name, bank.read(name))
        bank = other
    elif checkpointing == "through the bank":
        bank.enable_gradient_checkpointing()
    bank.train(training)
    passes = []
    bank.model.get_base_model().model.layers[0].self_attn.register_forward_hook(lambda *_: passes.append(1))
    ids, mask = tokens(shared=shared)
    hidden = forward(bank, ids, mask, ROWS, shared)
    expected = reference.run(ids, mask, ROWS)
    real = mask.bool()
    torch.testing.assert_close(hidden[real], expected[real], atol=1e-5, rtol=1e-5)
    objective(hidden, mask).backward()
    assert len(passes) == (1 if checkpointing == "off" else 2), (
        "checkpointed layers run again in the backward pass"
    )
    assert_same_gradients(bank, reference)
    assert all(p.grad is None for p in bank.parameters_of("teacher-1"))
    assert all(p.grad is None for p in bank.model.get_base_model().parameters() if not p.requires_grad)


@pytest.mark.parametrize("checkpointing", [False, True])
def test_passes_between_forward_and_backward_do_not_disturb_the_routing(
    make_bank: MakeBank, load_base: LoadBase, forward: Forward, tmp_path: Path, checkpointing: bool
) -> None:
    bank = make_bank()
    reference = Reference(bank, load_base(), tmp_path)
    if checkpointing:
        bank.enable_gradient_checkpointing()
    ids, mask = tokens()
    first = forward(bank, ids, mask, ROWS)
    with torch.no_grad():
        forward(bank, ids, mask, [None] * len(ROWS))
    second = forward(bank, ids[:2], mask[:2], ["teacher-0", "teacher-0"])
    objective(first, mask).backward()
    objective(second, mask[:2]).backward()
    reference.run(ids, mask, ROWS)
    reference.run(ids[:2], mask[:2], ["teacher-0", "teacher-0"])
    assert_same_gradients(bank, reference)


def test_rows_without_adapter_equal_the_base(
    make_bank: MakeBank, load_base: LoadBase, forward: Forward
) -> None:
    ids, mask = tokens()
    hidden = forward(make_bank(), ids, mask, ROWS)
    plain = load_base().model(ids, mask).last_hidden_state
    real = mask.bool()
    for row, name in enumerate(ROWS):
        same = torch.allclose(hidden[row][real[row]], plain[row][real[row]], atol=1e-5)
        assert same == (name is None)


@pytest.mark.parametrize("checkpointing", [False, True])
def test_half_precision_base_follows_peft(
    make_bank: MakeBank, load_base: LoadBase, forward: Forward, tmp_path: Path, checkpointing: bool
) -> None:
    bank = make_bank(torch.bfloat16)
    reference = Reference(bank, load_base(torch.bfloat16), tmp_path)
    if checkpointing:
        bank.enable_gradient_checkpointing()
    ids, mask = tokens(3)
    adapters = ["student-0", None, "teacher-0"]
    hidden = forward(bank, ids, mask, adapters)
    expected = reference.run(ids, mask, adapters)
    real = mask.bool()
    assert hidden.dtype == torch.bfloat16
    torch.testing.assert_close(hidden[real], expected[real], atol=0.1, rtol=0.05)
    objective(hidden, mask).backward()
    for name in ("student-0", "teacher-0"):
        expected_gradients, found = reference.gradients(name), gradients(bank, name)
        for path, gradient in expected_gradients.items():
            assert found[path].dtype == torch.float32
            error = (found[path] - gradient).norm() / gradient.norm()
            assert float(error) < 0.05


def test_base_never_drops_out_whatever_the_mode(load_base: LoadBase, forward: Forward) -> None:
    base = load_base()
    for layer in base.model.layers:
        layer.self_attn.attention_dropout = 0.9
    bank = AdapterBank(base, ("agent-0",), AdapterConfig(rank=4), seed=0)
    ids, mask = tokens()
    expected = forward(bank.eval(), ids, mask, ["agent-0"] * len(ROWS))
    bank.train()
    assert bank.training
    torch.testing.assert_close(forward(bank, ids, mask, ["agent-0"] * len(ROWS)), expected)
    bank.enable_gradient_checkpointing()
    torch.testing.assert_close(forward(bank, ids, mask, ["agent-0"] * len(ROWS)), expected)


def test_unknown_adapters_and_calls_past_the_bank_are_refused(make_bank: MakeBank, forward: Forward) -> None:
    bank = make_bank()
    ids, mask = tokens(2)
    with pytest.raises(ValueError, match="no adapter 'nobody'"):
        forward(bank, ids, mask, ["teacher-0", "nobody"])
    with pytest.raises(ConfigError, match=r"through AdapterBank\.hidden_states alone"):
        bank.model(ids, mask)


@pytest.mark.parametrize("window", [3, 11])
def test_sliding_windows_are_kept(tiny_base: Path, forward: Forward, window: int) -> None:
    settings = {"use_sliding_window": True, "sliding_window": window, "max_window_layers": 1}
    config = AutoConfig.from_pretrained(tiny_base, **settings)
    base = AutoModelForCausalLM.from_pretrained(tiny_base, config=config).eval()
    ids, mask = tokens()
    expected = base.model(ids, mask).last_hidden_state
    bank = AdapterBank(base, ("agent-0",), AdapterConfig(rank=4), seed=0)
    hidden = forward(bank, ids, mask, ["agent-0"] * len(ROWS))
    torch.testing.assert_close(hidden[mask.bool()], expected[mask.bool()], atol=1e-5, rtol=1e-5)


def test_a_base_with_attention_of_its_own_is_refused(load_base: LoadBase) -> None:
    base = load_base()
    base.set_attn_implementation("eager")
    with pytest.raises(ConfigError, match="Qwen2ForCausalLM computes attention by 'eager'"):
        AdapterBank(base, ("agent-0",), AdapterConfig(rank=4), seed=0)


def test_layout_shares_beginnings_and_merges_neighbours_of_one_adapter() -> None:
    layout = lay_out(
        [Bundle("a", (1, 2), ((3, 4), (5,))), Bundle("a", (1, 2), ((),)), Bundle(None, (6,), ((7,),))]
    )
    assert layout.input_ids.tolist() == [1, 2, 3, 4, 5, 1, 2, 6, 7]
    assert layout.positions.tolist() == [0, 1, 2, 3, 2, 0, 1, 0, 1]
    assert layout.rows.tolist() == [[0, 1, 2, 3], [0, 1, 4, 0], [5, 6, 5, 5], [7, 8, 7, 7]]
    assert layout.rows.flatten()[layout.places].tolist() == list(range(9))
    assert layout.segments == (Segment(0, 7, "a"), Segment(7, 9, None))


def test_layers_that_do_not_see_every_token_are_refused() -> None:
    router = Router(scaling=2.0)
    layer = torch.nn.Linear(3, 5)
    flat = torch.randn(8, 3)
    with (
        router.through((Segment(0, 2, "a"),)),
        pytest.raises(ConfigError, match="3 → 5 sees 8 tokens of a batch of 2"),
    ):
        router(layer, (flat,), layer(flat))
