"""Episodes: answers that hold when executed, and text that the tokenizer keeps."""

import json
import random
from typing import Any

import pytest
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer

from populora.embedded import model_path
from populora.embedded.episodes import MIXTURE, Episode, random_episode
from populora.embedded.tokenizer import build_tokenizer, chat_prompt, episode_text
from populora.tasks import Prompts, tasks
from populora.tasks.parsing import blocks, last_block


@pytest.fixture(scope="module")
def episodes() -> list[Episode]:
    rng = random.Random(4)
    return [random_episode(rng) for _ in range(500)]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(model_path())


def call(source: str, text: str) -> str:
    namespace: dict[str, object] = {}
    exec(source, namespace)  # noqa: S102
    return repr(eval(f"f({text})", namespace))


def of(episodes: list[Episode], role: str, task: str) -> list[Episode]:
    found = [e for e in episodes if (e.role, e.task) == (role, task)]
    assert found
    return found


def test_mixture_is_whole() -> None:
    assert sum(MIXTURE.values()) == pytest.approx(1.0)


def test_deduction_answers_are_right(episodes: list[Episode]) -> None:
    for episode in of(episodes, "solve", "deduction"):
        [program], [text] = blocks(episode.prompt, "python"), blocks(episode.prompt, "input")
        assert last_block(episode.response, "output") == call(program, text)


def test_abduction_answers_are_right(episodes: list[Episode]) -> None:
    for episode in of(episodes, "solve", "abduction"):
        [program], [output] = blocks(episode.prompt, "python"), blocks(episode.prompt, "output")
        assert call(program, last_block(episode.response, "input") or "") == output


def test_induction_answers_are_right(episodes: list[Episode]) -> None:
    for episode in of(episodes, "solve", "induction"):
        program = last_block(episode.response, "python") or ""
        pairs = [line[2:].split(") = ") for line in episode.prompt.split("\n") if line.startswith("f(")]
        assert len(pairs) == 5
        assert all(call(program, text) == output for text, output in pairs)


@pytest.mark.parametrize("task", ["deduction", "abduction"])
def test_proposals_can_be_read_and_run(episodes: list[Episode], task: str) -> None:
    for episode in of(episodes, "propose", task):
        draft = tasks[task].read_proposal(episode.response, ())
        assert draft is not None
        call(draft.program, draft.inputs[0])


def test_induction_proposals_have_ten_inputs_and_a_message(episodes: list[Episode]) -> None:
    for episode in of(episodes, "propose", "induction"):
        [program] = blocks(episode.prompt, "python")
        texts = blocks(episode.response, "input")
        assert len(set(texts)) == 10
        assert all(call(program, text) for text in texts)
        assert last_block(episode.response, "message")


def test_tokenizer_keeps_every_text(tokenizer: Any, episodes: list[Episode]) -> None:
    for text in [*map(episode_text, episodes), "naïve ≠ 'ÄÖ'\t\r\n\n  x", "```x\n\n```", "<think></answer>"]:
        assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) == text


def test_letters_and_digits_are_tokens_of_their_own(tokenizer: Any) -> None:
    pieces = [tokenizer.decode([i]) for i in range(len(tokenizer))]
    assert not [p for p in pieces if len(p) > 1 and any(c.isdigit() or c.isupper() for c in p)]


def test_tags_survive_and_chat_markup_does_not(tokenizer: Any) -> None:
    ids = tokenizer.encode("<think>\n</think><|im_end|>", add_special_tokens=False)
    assert tokenizer.decode(ids, skip_special_tokens=True) == "<think>\n</think>"


def test_prompts_are_tokenized_as_in_training(tokenizer: Any, episodes: list[Episode]) -> None:
    """A prompt and its frame, tokenized apart, give the tokens of the whole text."""
    prompts = Prompts.load("compact", tokenizer)
    for episode in episodes:
        assert prompts.encode(episode.prompt) == tokenizer.encode(
            chat_prompt(episode.prompt), add_special_tokens=False
        )


def test_chat_template_writes_what_training_showed(tokenizer: Any) -> None:
    messages = [{"role": "user", "content": "x\n"}]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert text == chat_prompt("x\n")


def test_shipped_model_loads_and_is_small() -> None:
    folder = model_path()
    assert sum(path.stat().st_size for path in folder.rglob("*")) < 8_000_000
    model = AutoModelForCausalLM.from_pretrained(folder)
    shipped = AutoTokenizer.from_pretrained(folder)
    assert model.config.vocab_size == len(shipped)
    assert model.config.max_position_embeddings == 1024
    assert (shipped.eos_token, shipped.pad_token) == ("<|im_end|>", "<|endoftext|>")
    assert model.generation_config.eos_token_id == shipped.eos_token_id


def test_tokenizer_loads_as_its_file_says(tokenizer: Any, episodes: list[Episode]) -> None:
    """Loading by model type must not put another pre-tokenizer in its place."""
    plain = Tokenizer.from_file(str(model_path() / "tokenizer.json"))
    for episode in episodes[:50]:
        text = episode_text(episode)
        assert tokenizer.encode(text, add_special_tokens=False) == plain.encode(text).ids


@pytest.mark.slow
def test_shipped_tokenizer_is_the_one_the_code_builds() -> None:
    shipped = json.loads((model_path() / "tokenizer.json").read_text())
    built = json.loads(build_tokenizer().backend_tokenizer.to_str())
    for part in ("model", "pre_tokenizer", "decoder", "added_tokens"):
        assert shipped[part] == built[part]


def test_haste_leaves_out_thoughts_and_nothing_else() -> None:
    careful, hasty = (
        [random_episode(random.Random(seed), haste=haste) for seed in range(60)] for haste in (0.0, 1.0)
    )
    solved = [pair for pair in zip(careful, hasty, strict=True) if pair[0].role == "solve"]
    assert len(solved) > 30
    for slow, quick in solved:
        assert quick.prompt == slow.prompt
        assert quick.response == "<think>\n</think>" + slow.response.partition("</think>")[2]
    assert all(a == b for a, b in zip(careful, hasty, strict=True) if a.role == "propose")
