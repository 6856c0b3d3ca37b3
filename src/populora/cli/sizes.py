"""How large a run is, from its settings and the base's ``config.json`` alone."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from populora.config import AdapterConfig, PopulationConfig, RolloutConfig
from populora.errors import ConfigError

DTYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True)
class Linear:
    """A linear projection of the base."""

    name: str
    inputs: int
    outputs: int


@dataclass(frozen=True)
class BaseShape:
    """The shapes of a Llama-like decoder (Llama, Mistral, Qwen2, Qwen3 …)."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    tied: bool
    """Whether input and output embedding are one matrix."""

    @classmethod
    def read(cls, file: Path) -> "BaseShape":
        """Read the shapes from a ``config.json``.

        Raises:
            ConfigError: the file is missing, or describes another kind of model.
        """
        try:
            values = json.loads(file.read_text(encoding="utf-8"))
            heads = int(values["num_attention_heads"])
            return cls(
                hidden=int(values["hidden_size"]),
                intermediate=int(values["intermediate_size"]),
                layers=int(values["num_hidden_layers"]),
                heads=heads,
                kv_heads=int(values.get("num_key_value_heads") or heads),
                head_dim=int(values.get("head_dim") or values["hidden_size"] // heads),
                vocabulary=int(values["vocab_size"]),
                tied=bool(values.get("tie_word_embeddings", False)),
            )
        except FileNotFoundError as error:
            raise ConfigError(
                f"model.base.path: there is no {file}; give the folder of a saved model"
            ) from error
        except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
            raise ConfigError(
                f"model.base.path: {file} does not describe a Llama-like decoder ({error}); its sizes are unknown"
            ) from error

    def linears(self) -> Iterator[Linear]:
        """Yield every linear projection of the decoder layers."""
        query, key_value = self.heads * self.head_dim, self.kv_heads * self.head_dim
        shapes = {
            "self_attn.q_proj": (self.hidden, query),
            "self_attn.k_proj": (self.hidden, key_value),
            "self_attn.v_proj": (self.hidden, key_value),
            "self_attn.o_proj": (query, self.hidden),
            "mlp.gate_proj": (self.hidden, self.intermediate),
            "mlp.up_proj": (self.hidden, self.intermediate),
            "mlp.down_proj": (self.intermediate, self.hidden),
        }
        for layer in range(self.layers):
            for name, (inputs, outputs) in shapes.items():
                yield Linear(f"model.layers.{layer}.{name}", inputs, outputs)

    @property
    def parameters(self) -> int:
        """Number of weights; biases are left out."""
        embeddings = self.vocabulary * self.hidden * (1 if self.tied else 2)
        norms = (2 * self.layers + 1) * self.hidden
        return embeddings + norms + sum(linear.inputs * linear.outputs for linear in self.linears())

    @property
    def cached_values(self) -> int:
        """Values that the key-value cache holds for one token."""
        return 2 * self.layers * self.kv_heads * self.head_dim


def adapter_parameters(shape: BaseShape, adapter: AdapterConfig) -> int:
    """Return the number of weights of one adapter: r · (inputs + outputs) for each adapted projection.

    Raises:
        ConfigError: ``target_modules`` names no projection of this base.
    """
    adapted = [linear for linear in shape.linears() if _is_adapted(linear.name, adapter.target_modules)]
    if not adapted:
        known = sorted({linear.name.rpartition(".")[2] for linear in shape.linears()})
        raise ConfigError(
            f"model.adapter.target_modules: {adapter.target_modules!r} names no projection of this base, "
            f"which has {', '.join(known)}"
        )
    return sum(adapter.rank * (linear.inputs + linear.outputs) for linear in adapted)


def _is_adapted(name: str, targets: str | list[str]) -> bool:
    if targets == "all-linear":
        return True
    if isinstance(targets, str):
        return re.fullmatch(targets, name) is not None
    return any(f".{name}".endswith(f".{target}") for target in targets)


@dataclass(frozen=True)
class IterationSize:
    """What one iteration generates."""

    matches: int
    proposals: int
    attempts: int
    """With problems from the buffer in place of invalid ones, there are always this many."""
    most_tokens: int

    @classmethod
    def of(cls, population: PopulationConfig, rollout: RolloutConfig) -> "IterationSize":
        """Derive the sizes from the settings."""
        proposals = population.teachers * rollout.proposals_per_match
        attempts = proposals * rollout.attempts
        tokens = proposals * rollout.max_proposal_tokens + attempts * rollout.max_attempt_tokens
        return cls(population.teachers, proposals, attempts, tokens)
