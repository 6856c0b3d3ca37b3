from collections.abc import Callable

import pytest
from transformers import AutoModel, PreTrainedModel

from populora.errors import ConfigError
from populora.population.targets import target_paths

LoadBase = Callable[..., PreTrainedModel]


def test_names_expressions_and_all_linear(load_base: LoadBase) -> None:
    base = load_base()
    queries = ["model.layers.0.self_attn.q_proj", "model.layers.1.self_attn.q_proj"]
    assert target_paths(base, ["q_proj"]) == queries
    assert target_paths(base, ["self_attn.q_proj", queries[0]]) == queries
    assert target_paths(base, r".*\.1\..*q_proj") == queries[1:]
    everything = target_paths(base, "all-linear")
    assert len(everything) == 14
    assert "lm_head" not in everything


@pytest.mark.parametrize("targets", [["q_proj", "qproj"], ["proj"], ["lm_head"], ["self_attn"], "q_proj"])
def test_unknown_targets_are_refused_with_the_names_there_are(
    load_base: LoadBase, targets: str | list[str]
) -> None:
    with pytest.raises(ConfigError, match="down_proj, gate_proj, k_proj, o_proj, q_proj, up_proj, v_proj"):
        target_paths(load_base(), targets)


def test_broken_expressions_are_refused(load_base: LoadBase) -> None:
    with pytest.raises(ConfigError, match="no regular expression"):
        target_paths(load_base(), "*q_proj")


def test_a_base_without_head_is_refused(load_base: LoadBase) -> None:
    headless = AutoModel.from_config(load_base().config)
    with pytest.raises(ConfigError, match="Qwen2Model has no language-model head"):
        target_paths(headless, "all-linear")
