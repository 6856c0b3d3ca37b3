import json
from pathlib import Path

import pytest

from populora.cli.sizes import BaseShape, IterationSize, adapter_parameters
from populora.config import AdapterConfig, PopulationConfig, RolloutConfig
from populora.errors import ConfigError

QWEN_7B = {
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "tie_word_embeddings": False,
}


@pytest.fixture
def qwen(tmp_path: Path) -> BaseShape:
    (tmp_path / "config.json").write_text(json.dumps(QWEN_7B))
    return BaseShape.read(tmp_path / "config.json")


def test_qwen2_5_7b_has_its_published_size(qwen: BaseShape) -> None:
    biases = 28 * (3584 + 512 + 512)  # of the query, key and value projections, which the count leaves out
    assert qwen.parameters == 7_615_616_512 - biases


@pytest.mark.parametrize(("rank", "published"), [(8, 20_185_088), (32, 80_740_352)])
def test_adapters_of_qwen2_5_7b_have_the_size_that_peft_reports(
    qwen: BaseShape, rank: int, published: int
) -> None:
    assert adapter_parameters(qwen, AdapterConfig(rank=rank)) == published


@pytest.mark.parametrize("targets", ["all-linear", ["q_proj", "v_proj"], r".*layers\.1\.mlp\.(gate|up)_proj"])
def test_sizes_are_those_of_the_loaded_model(tiny_base: Path, targets: str | list[str]) -> None:
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_base)
    shape = BaseShape.read(tiny_base / "config.json")
    biases = sum(p.numel() for name, p in model.named_parameters() if name.endswith("bias"))
    assert shape.parameters == sum(p.numel() for p in model.parameters()) - biases
    with_adapter = get_peft_model(model, LoraConfig(r=4, target_modules=targets))
    trainable = sum(p.numel() for p in with_adapter.parameters() if p.requires_grad)
    assert adapter_parameters(shape, AdapterConfig(rank=4, target_modules=targets)) == trainable


def test_targets_that_do_not_exist_are_told(qwen: BaseShape) -> None:
    with pytest.raises(ConfigError, match="names no projection of this base, which has down_proj, gate_proj"):
        adapter_parameters(qwen, AdapterConfig(target_modules=["query"]))


def test_another_kind_of_model_is_told(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"n_embd": 768}')
    with pytest.raises(ConfigError, match="does not describe a Llama-like decoder"):
        BaseShape.read(tmp_path / "config.json")


def test_an_iteration_of_four_and_four_by_hand() -> None:
    rollout = RolloutConfig(
        prompts_per_task=2, group_size=5, attempts=3, max_proposal_tokens=10, max_attempt_tokens=7
    )
    size = IterationSize.of(PopulationConfig(teachers=4, students=4), rollout)
    # 4 matches of 3 tasks × 2 prompts × 5 samples, each attempted 3 times
    assert (size.matches, size.proposals, size.attempts) == (4, 120, 360)
    assert size.most_tokens == 120 * 10 + 360 * 7
