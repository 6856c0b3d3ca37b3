"""Runs that are killed, stopped and requeued at any moment end as if nothing had happened."""

import os
import random
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

ITERATIONS = 6


class Story:
    """The uninterrupted run that others are compared with, and how to tell the same story again."""

    def __init__(self, launch: Any, checkpoints: Any, config: Path, folder: Path) -> None:
        self._launch = launch
        self._checkpoints = checkpoints
        self._config = config
        self._folder = folder
        self.told = self.run("whole")
        assert self.told.code == 0, self.told.said

    def run(self, name: str, *more: str, **how: Any) -> Any:
        """Run, or go on with, a story in a folder of that name."""
        root = self._folder / name
        words = [f"--config={self._config}", f"--trainer.default_root_dir={root}", *more]
        return self._launch(["fit", *words, f"--data.iterations={ITERATIONS}"], root, **how)

    def check(self, name: str) -> None:
        """Compare the end of a run with that of the uninterrupted one: state, samples, and nothing left over."""
        whole, other = self._folder / "whole", self._folder / name
        ends = [self._checkpoints.last(root) for root in (whole, other)]
        assert ends[1]["populora"]["iteration"] == ITERATIONS
        assert self._checkpoints.differences(*ends) == []
        assert (other / "samples.jsonl").read_text() == (whole / "samples.jsonl").read_text()
        kept = sorted(path.name for path in (whole / "checkpoints").iterdir())
        assert sorted(path.name for path in (other / "checkpoints").iterdir()) == kept


@pytest.fixture(scope="module")
def story(
    launch: Any, checkpoints: Any, tiny_base: Path, few: Any, tmp_path_factory: pytest.TempPathFactory
) -> Story:
    folder = tmp_path_factory.mktemp("story")
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(few(tiny_base)))
    return Story(launch, checkpoints, config, folder)


def _orphans(trainer: int) -> list[str]:
    """Processes that were told the pid of a trainer when they started, and have not ended with it."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or []
        if str(trainer) in words and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(" ".join(words))
    return found


def _in_memory(pids: set[int]) -> list[str]:
    shared = Path("/dev/shm")
    return [p.name for pid in pids for p in shared.glob(f"populora-{pid}-*")] if shared.is_dir() else []


def _sweep(story: Story, kills: int, seed: int) -> int:
    """Kill runs at random moments until ``kills`` have died; return how many stories came to their end."""
    rng = random.Random(seed)
    dead: set[int] = set()
    ended = 0
    while len(dead) < kills:
        name = f"killed-{seed}-{ended}"
        moment = rng.randint(1, story.told.moments)
        outcome = story.run(name, "--ckpt_path=last", signals={moment: signal.SIGKILL})
        if outcome.code == 0:
            story.check(name)
            ended += 1
        else:
            assert outcome.code == -signal.SIGKILL, outcome.said
            dead.add(outcome.pid)
    final = story.run(f"killed-{seed}-{ended}", "--ckpt_path=last")
    assert final.code == 0, final.said
    story.check(f"killed-{seed}-{ended}")
    for pid in dead:
        assert _orphans(pid) == []
    assert _in_memory(dead) == []
    return ended + 1


def test_a_run_killed_at_four_moments_ends_the_same(story: Story) -> None:
    _sweep(story, kills=4, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_runs_killed_at_thirty_moments_end_the_same(story: Story) -> None:
    assert _sweep(story, kills=30, seed=2) >= 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_told_to_stop_finishes_its_iteration_and_says_where_it_saved(
    story: Story, checkpoints: Any, number: int
) -> None:
    name = f"stopped-{number}"
    outcome = story.run(name, signals={story.told.moments // 2: number})
    assert outcome.code == 0, outcome.said
    root = story._folder / name
    saved = checkpoints.last(root)["populora"]["iteration"]
    assert 1 <= saved < ITERATIONS
    assert "finishing this iteration, then saving" in outcome.said
    assert f"Saved after iteration {saved}: {root}/checkpoints/iteration-{saved:05}.ckpt" in outcome.said
    assert story.run(name, "--ckpt_path=last").code == 0
    ends = [checkpoints.last(story._folder / each) for each in ("whole", name)]
    assert checkpoints.differences(*ends) == []


def test_a_second_signal_stops_at_once_with_what_is_complete(story: Story, checkpoints: Any) -> None:
    middle = story.told.moments // 2
    outcome = story.run("twice", signals={middle: signal.SIGTERM, middle + 1: signal.SIGTERM})
    assert outcome.code == 130, outcome.said
    assert story.run("twice", "--ckpt_path=last").code == 0
    ends = [checkpoints.last(story._folder / each) for each in ("whole", "twice")]
    assert checkpoints.differences(*ends) == []


def test_a_cluster_job_is_requeued_after_its_iteration_and_goes_on_by_itself(
    story: Story, checkpoints: Any, tmp_path: Path
) -> None:
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n')
    scontrol.chmod(0o755)
    job = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "SLURM_JOB_ID": "4711",
        "SLURM_JOB_NAME": "train",
        "SLURM_NTASKS": "1",
        "SLURM_PROCID": "0",
        "SLURM_LOCALID": "0",
        "SLURM_NODEID": "0",
        "SLURM_NODELIST": "localhost",
    }
    outcome = story.run("slurm", environment=job, signals={story.told.moments // 2: signal.SIGUSR1})
    assert outcome.code == 0, outcome.said
    assert (tmp_path / "calls").read_text() == "requeue 4711\n"
    root = story._folder / "slurm"
    assert (root / "hpc_ckpt_1.ckpt").is_dir()
    saved = checkpoints.last(root)["populora"]["iteration"]
    assert 1 <= saved < ITERATIONS
    again = story.run("slurm", environment=job)
    assert again.code == 0, again.said
    assert f"after iteration {saved}" in again.said
    ends = [checkpoints.last(story._folder / each) for each in ("whole", "slurm")]
    assert checkpoints.differences(*ends) == []
