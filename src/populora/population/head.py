"""From hidden states to logits: what a base does there besides multiplying with its head."""

from typing import Any

import torch
from torch.nn import functional
from transformers import PreTrainedModel

from populora.errors import ConfigError

_FACTORS = ("logit_scale", "lm_head_multiplier")
"""Fields that logits are multiplied by (Cohere, Falcon-H1)."""
_DIVISORS = ("logits_scaling",)
"""Fields that logits are divided by (Granite)."""
_CAPS = ("final_logit_softcapping",)
"""Fields that bend logits (Gemma 2)."""
_TOLERANCE = 0.02


def logit_scale(config: Any) -> float:
    """Return the number that a base multiplies its logits by, 1 for most.

    Args:
        config: The base's, in transformers' form.

    Raises:
        ConfigError: the base bends its logits, which log-probabilities taken from the head alone do not see.
    """
    text = config.get_text_config()
    for name in _CAPS:
        if getattr(text, name, None) is not None:
            raise ConfigError(
                f"model.base.path: this base caps its logits ({name}: {getattr(text, name)}), which is not supported; "
                "expected logits that are the head's product, at most scaled; choose another base"
            )
    scale = 1.0
    for name in _FACTORS:
        scale *= getattr(text, name, None) or 1.0
    for name in _DIVISORS:
        scale /= getattr(text, name, None) or 1.0
    return scale


@torch.no_grad()
def check_head(model: PreTrainedModel) -> None:
    """Check on a few tokens that a base's logits are its head's product with the hidden states, scaled.

    Raises:
        ConfigError: they are not, so log-probabilities would be wrong.
    """
    head, scale = model.get_output_embeddings(), logit_scale(model.config)
    if head is None:
        raise ConfigError(
            "model.base.path: this base has no language-model head; expected a causal language model"
        )
    tokens = torch.arange(4, device=model.device)[None] % head.weight.shape[0]
    hidden = model.get_decoder()(input_ids=tokens, use_cache=False).last_hidden_state
    expected = model(input_ids=tokens, use_cache=False).logits.float()
    found = scale * functional.linear(hidden, head.weight, getattr(head, "bias", None)).float()
    error = ((found - expected).abs().max() / expected.abs().max().clamp(min=1e-6)).item()
    if error > _TOLERANCE:
        raise ConfigError(
            f"model.base.path: logits of {type(model).__name__} differ by {error:.1%} from its head's product with the "
            "hidden states, so log-probabilities would be wrong; choose another base"
        )
