"""Log-probabilities against those of bases that do more to their logits than multiply with a head."""

from typing import Any

import pytest
import torch
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    Cohere2Config,
    CohereConfig,
    Gemma2Config,
    GraniteConfig,
    LlamaConfig,
    PreTrainedModel,
)

from populora.config import AdapterConfig
from populora.errors import ConfigError
from populora.learning.logprobs import completion_logprobs
from populora.population.bank import AdapterBank
from populora.population.head import check_head, logit_scale

SHAPE = {
    "vocab_size": 50, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 0,
    "eos_token_id": 1,
}  # fmt: skip
TEMPERATURE = 0.7


def _model(kind: type, **settings: Any) -> PreTrainedModel:
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(kind(**SHAPE, initializer_range=0.3, **settings)).eval()


@pytest.mark.parametrize(
    ("kind", "settings", "scale"),
    [
        (LlamaConfig, {}, 1.0),
        (CohereConfig, {"logit_scale": 0.25}, 0.25),
        (Cohere2Config, {"logit_scale": 0.0625, "sliding_window": 8}, 0.0625),
        (GraniteConfig, {"logits_scaling": 8.0, "embedding_multiplier": 12.0}, 0.125),
    ],
)
def test_scaled_logits_give_the_log_probabilities_of_transformers(
    kind: type, settings: dict[str, float], scale: float
) -> None:
    model = _model(kind, **settings)
    assert logit_scale(model.config) == scale
    check_head(model)
    ids = torch.randint(50, (2, 9), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        logits = model(input_ids=ids).logits[:, :-1].float()
        hidden = model.get_decoder()(input_ids=ids).last_hidden_state[:, :-1].flatten(0, 1)
    expected = (logits / TEMPERATURE).log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
    bank = AdapterBank(model, ["student-0"], AdapterConfig(rank=2, alpha=4.0), seed=0)
    targets = ids[:, 1:].flatten()
    found, _ = completion_logprobs(hidden, bank.head, bank.head_bias, targets, TEMPERATURE / bank.logit_scale)
    torch.testing.assert_close(found, expected.flatten(), atol=1e-5, rtol=1e-5)
    if scale != 1:
        wrong, _ = completion_logprobs(hidden, bank.head, bank.head_bias, targets, TEMPERATURE)
        assert (wrong - expected.flatten()).abs().max() > 0.1


def test_capped_logits_are_refused() -> None:
    model = _model(Gemma2Config, final_logit_softcapping=30.0)
    with pytest.raises(
        ConfigError, match=r"model\.base\.path: this base caps its logits.*final_logit_softcapping: 30"
    ):
        AdapterBank(model, ["student-0"], AdapterConfig(rank=2), seed=0)


def test_gemma_2_without_caps_is_accepted() -> None:
    check_head(_model(Gemma2Config, final_logit_softcapping=None))


def test_whatever_else_a_base_does_to_its_logits_is_noticed() -> None:
    model = _model(LlamaConfig)

    class Shifted(nn.Linear):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            return super().forward(input).tanh()

    head = Shifted(32, 50, bias=False)
    head.weight = model.lm_head.weight
    model.lm_head = head
    with pytest.raises(ConfigError, match="differ by"):
        check_head(model)
