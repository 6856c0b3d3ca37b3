"""What breaks in the middle of a run, and what the run then does."""

import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from transformers import AutoTokenizer

from populora.cli import main
from populora.cli.takeover import chosen_checkpoint
from populora.datamodule import RolloutDataModule
from populora.errors import EngineError
from populora.records import Completion
from populora.rollouts.engine import GenerationRequest, LoadedAdapter, engines
from populora.rollouts.scripted import ScriptedEngine, modular

Run = Callable[..., dict[str, Any]]
Act = Callable[[RolloutDataModule, str, int], None]


@pytest.fixture
def at_stage(monkeypatch: pytest.MonkeyPatch) -> Callable[[Act], None]:
    """Return a function that sets what happens when a stage of an iteration begins."""
    told = RolloutDataModule.tell

    def do(act: Act) -> None:
        def tell(data: RolloutDataModule, stage: str, done: int, total: int) -> None:
            act(data, stage, data.module.iteration)
            told(data, stage, done, total)

        monkeypatch.setattr(RolloutDataModule, "tell", tell)

    return do


def _children(word: str) -> list[psutil.Process]:
    living = [each for each in psutil.Process().children() if each.status() != psutil.STATUS_ZOMBIE]
    return [each for each in living if word in " ".join(each.cmdline())]


class Mortal(ScriptedEngine):
    """Fails while it generates for the third iteration, once, and forgets its adapters as a dead process does."""

    deaths = 0

    def _sample(self, requests: Any) -> Any:
        newest = max((adapter.version for adapter in self.adapters.values()), default=0)
        if newest >= 2 and not Mortal.deaths:
            Mortal.deaths += 1
            raise EngineError("vLLM failed with 3 of 12 responses generated: its process died")
        return super()._sample(requests)


class Stale(ScriptedEngine):
    """Goes on serving the first version of student-0."""

    def _load(self, adapter: LoadedAdapter) -> None:
        super()._load(adapter)
        self._first = getattr(self, "_first", {})
        if adapter.member == "student-0":
            self._first.setdefault(adapter.member, super()._fingerprint(adapter))

    def _fingerprint(self, adapter: LoadedAdapter) -> str:
        return self._first.get(adapter.member) or super()._fingerprint(adapter)


class Nan(ScriptedEngine):
    """Gives student-0 log-probabilities that are no numbers."""

    def _sample(self, requests: Any) -> Any:
        for index, completions in super()._sample(requests):
            if requests[index].member == "student-0":
                completions = tuple(
                    Completion(c.token_ids, (float("nan"),) * len(c.token_ids), c.text, c.finish_reason)
                    for c in completions
                )
            yield index, completions


def _mute(request: GenerationRequest, index: int) -> str:
    return ""


def _babble(request: GenerationRequest, index: int) -> str:
    return "<answer>\x00\ud7ff```python\n" * 3


for name, engine in {
    "test-mortal": Mortal,
    "test-stale": Stale,
    "test-nan": Nan,
    "test-mute": lambda config: ScriptedEngine(config, _mute),
    "test-babble": lambda config: ScriptedEngine(config, _babble),
}.items():
    engines.register(name)(engine)


def test_an_engine_that_dies_is_restarted_and_nothing_is_lost(
    run: Run, checkpoints: Any, caplog: pytest.LogCaptureFixture
) -> None:
    whole = run("whole", 4)
    mortal = run("mortal", 4, "--data.engine.name=test-mortal")
    assert Mortal.deaths == 1
    assert "Restarting the engine once" in caplog.text
    assert checkpoints.differences(whole, mortal) == []


def test_a_stale_adapter_stops_the_run(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = f"--trainer.default_root_dir={tmp_path / 'stale'}"
    words = ["fit", f"--config={config}", root, "--data.iterations=4", "--data.engine.name=test-stale"]
    assert main(words) == 1
    assert "the engine does not hold version 1 of student-0" in capsys.readouterr().err
    assert not _children("verifier")


def test_a_member_without_numbers_stops_the_run_and_the_others_learn_until_then(
    config: Path, tmp_path: Path, checkpoints: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "nan"
    words = ["fit", f"--config={config}", f"--trainer.default_root_dir={root}", "--data.iterations=9"]
    callbacks = "--trainer.callbacks=[populora.callbacks.RatingUpdates, populora.callbacks.RunCheckpoint]"
    limits = ["--model.learning.bad_steps=6", callbacks]
    assert main([*words, "--data.engine.name=test-nan", *limits]) == 1
    assert "student-0: loss nan" in capsys.readouterr().err
    members = checkpoints.last(root)["populora"]["population"]["members"]
    assert (members["student-0"][2], members["student-1"][2] > 0) == (0, True)


def test_a_mismatch_above_the_limit_stops_the_run(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = f"--trainer.default_root_dir={tmp_path / 'mismatch'}"
    words = ["fit", f"--config={config}", root, "--data.iterations=9", "--model.learning.mismatch_limit=0.5"]
    assert main(words) == 1
    assert "in 3 steps in a row. It learns from responses of another policy" in capsys.readouterr().err


def test_a_verifier_worker_that_dies_changes_no_verdict(
    run: Run, checkpoints: Any, at_stage: Callable[[Act], None]
) -> None:
    whole = run("whole", 3)
    killed: dict[tuple[str, int], int] = {}

    def kill(data: RolloutDataModule, stage: str, iteration: int) -> None:
        if stage in ("propose", "solve") and (stage, iteration) not in killed:
            victims = _children("verifier")
            victim = victims[len(killed) % len(victims)]
            victim.send_signal(signal.SIGKILL)
            killed[stage, iteration] = victim.pid

    at_stage(kill)
    hurt = run("hurt", 3)
    assert len(set(killed.values())) >= 6
    assert checkpoints.differences(whole, hurt) == []
    assert not _children("verifier")


def test_adapters_removed_from_memory_are_written_again(
    run: Run, checkpoints: Any, at_stage: Callable[[Act], None]
) -> None:
    whole = run("whole", 3)
    removed: list[Path] = []

    def remove(data: RolloutDataModule, stage: str, iteration: int) -> None:
        if stage == "solve":
            folders = {adapter.path.parent for adapter in data.engine.adapters.values()}
            for folder in filter(Path.exists, folders):
                shutil.rmtree(folder)
                removed.append(folder)

    at_stage(remove)
    assert checkpoints.differences(whole, run("removed", 3)) == []
    assert removed
    assert not any(folder.exists() for folder in removed)


@pytest.fixture
def small_disk(disk: Callable[[int], Path]) -> Path:
    """A file system that holds two checkpoints, not three."""
    return disk(2500)


def test_a_full_disk_stops_the_run_with_its_last_checkpoint_whole(
    config: Path, small_disk: Path, checkpoints: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """The disk fills up before the run is done; freed, the run goes on."""
    words = ["fit", f"--config={config}", f"--trainer.default_root_dir={small_disk}", "--data.iterations=6"]
    saving = "{class_path: populora.callbacks.RunCheckpoint, init_args: {every: 1, keep: 9}}"
    every = f"--trainer.callbacks=[populora.callbacks.RatingUpdates, {saving}]"
    assert main([*words, every]) == 1
    error = capsys.readouterr().err
    assert "cannot write the checkpoint" in error or "No space left" in error
    reached = checkpoints.last(small_disk)["populora"]["iteration"]
    assert 1 <= reached < 6
    names = {path.name for path in (small_disk / "checkpoints").iterdir()}
    assert not any(name.startswith(".") for name in names)
    for old in sorted(names - {"last.ckpt"})[:-1]:
        shutil.rmtree(small_disk / "checkpoints" / old)
    thrifty = every.replace("keep: 9", "keep: 1")
    assert main([*words, thrifty, "--ckpt_path=last"]) == 0
    assert checkpoints.last(small_disk)["populora"]["iteration"] == 6


REGIONS = [
    "manifest.json", "state.pt", "config.yaml", "adapters/teacher-1/adapter_model.safetensors",
    "adapters/student-0/adapter_config.json", "moments/student-1.safetensors",
]  # fmt: skip


def test_a_damaged_checkpoint_is_passed_over_wherever_the_damage_is(
    run: Run, checkpoints: Any, config: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = run("whole", 5)
    run("damaged", 3)
    run("damaged", 4, "--ckpt_path=last")
    folder = tmp_path / "damaged" / "checkpoints"
    newest = (folder / "last.ckpt").resolve()
    for region in REGIONS:
        content = (newest / region).read_bytes()
        (newest / region).write_bytes(content[:-9] + b"?" + content[-8:])
        caplog.clear()
        assert chosen_checkpoint("last", (folder,)) == str(folder / "iteration-00003.ckpt")
        assert "Passing over a damaged checkpoint" in caplog.text
        (newest / region).write_bytes(content)
    assert chosen_checkpoint("last", (folder,)) == str(newest)
    (newest / REGIONS[0]).write_text("{")
    words = [f"--config={config}", f"--trainer.default_root_dir={folder.parent}", "--data.iterations=5"]
    assert main(["fit", *words, f"--ckpt_path={newest}"]) == 1
    assert checkpoints.differences(whole, run("damaged", 5, "--ckpt_path=last")) == []


@pytest.mark.parametrize("engine", ["test-mute", "test-babble"])
def test_a_population_that_writes_nothing_of_use_goes_on(run: Run, engine: str) -> None:
    """All proposals are invalid: rewards are equal, nobody learns, every student wins, and the buffer stays."""
    end = run(engine, 2, f"--data.engine.name={engine}")
    population = end["populora"]["population"]
    bred = {record["slot"] for record in population["lineage"]}
    assert {version for name, (_, _, version) in population["members"].items() if name not in bred} == {0}
    assert {p["author"] for ps in end["RolloutDataModule"]["buffer"].values() for p in ps} == {None}


def test_responses_without_room_are_malformed_data(run: Run) -> None:
    short = ["--data.rollout.max_proposal_tokens=1", "--data.rollout.max_attempt_tokens=1"]
    assert run("short", 2, *short)["populora"]["iteration"] == 2


def test_a_base_without_padding_token_and_chat_template_is_prompted_plainly(
    run: Run, tiny_base: Path, tmp_path: Path
) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(tiny_base, bare)
    tokenizer = AutoTokenizer.from_pretrained(bare)
    tokenizer.chat_template = None
    tokenizer.pad_token = None
    for file in bare.glob("*token*"):
        file.unlink()
    (bare / "chat_template.jinja").unlink(missing_ok=True)
    tokenizer.save_pretrained(bare)
    reloaded = AutoTokenizer.from_pretrained(bare)
    assert (reloaded.chat_template, reloaded.pad_token) == (None, None)
    end = run("bare", 1, f"--model.base.path={bare}", "--model.base.prompts=auto")
    assert end["populora"]["iteration"] == 1


def test_the_script_of_these_tests_is_right_sometimes() -> None:
    """Guards the tests above: a script without right answers would prove nothing about verdicts."""
    texts = {modular(GenerationRequest((1,), None, 1, 9, 1.0, seed), 0) for seed in range(40)}
    assert len(texts) > 20
