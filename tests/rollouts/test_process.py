"""A served object in a process of its own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from populora.errors import EngineError
from populora.rollouts import process as engine_process
from populora.rollouts.process import Call, EngineProcess, Part, call_each, stream_each

SERVED = """
import os, subprocess, sys, time
from populora.rollouts import process
from populora.rollouts.process import Part, serve

class Served:
    def add(self, a, b):
        return a + b
    def environment(self, name):
        return os.environ.get(name)
    def count(self, n):
        for done in range(1, n + 1):
            yield Part(done)
        return "counted"
    def fail(self):
        raise ValueError("no such thing")
    def die(self):
        print("last words", flush=True)
        os._exit(3)
    def hang(self):
        time.sleep(600)
    def swallow(self, data):
        return len(data)
    def have_child(self):
        return subprocess.Popen(["sleep", "600"]).pid

serve(Served(), int(sys.argv[1]))
"""


def _start(folder: Path) -> EngineProcess:
    (folder / "served_here.py").write_text(SERVED)
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    return EngineProcess("served_here", {**os.environ, "PYTHONPATH": path, "ONLY_THERE": "yes"})


@pytest.fixture
def process(tmp_path: Path) -> Iterator[EngineProcess]:
    started = _start(tmp_path)
    yield started
    started.kill()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[EngineProcess, EngineProcess]]:
    started = _start(tmp_path), _start(tmp_path)
    yield started
    for each in started:
        each.kill()


def _gone(pid: int) -> bool:
    deadline = time.monotonic() + 20
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_calls_return_results_from_the_other_process(process: EngineProcess) -> None:
    assert process.call("add", 2, 3, timeout=60) == 5
    assert process.call("environment", "ONLY_THERE", timeout=60) == "yes"
    assert "ONLY_THERE" not in os.environ


def test_parts_arrive_before_the_result(process: EngineProcess) -> None:
    messages = list(stream_each([process], [Call("count", (3,))], 60))
    assert messages == [(0, Part(1)), (0, Part(2)), (0, Part(3)), (0, "counted")]
    assert process.call("count", 3, timeout=60) == "counted"


def test_an_exception_is_reported_and_the_process_goes_on(process: EngineProcess) -> None:
    with pytest.raises(EngineError, match="ValueError: no such thing"):
        process.call("fail", timeout=60)
    assert process.call("add", 1, 1, timeout=60) == 2


def test_death_is_reported_with_its_last_output(process: EngineProcess) -> None:
    with pytest.raises(EngineError, match=r"exit code 3.*\n*.*last words"):
        process.call("die", timeout=60)


def test_being_killed_is_told_from_other_ends(process: EngineProcess) -> None:
    process.call("add", 1, 1, timeout=60)
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(EngineError, match="killed from outside"):
        process.call("add", 1, 1, timeout=60)


def test_a_hung_call_ends_with_the_process_and_its_children(process: EngineProcess) -> None:
    child = process.call("have_child", timeout=60)
    with pytest.raises(EngineError, match=r"no answer within 0\.2 s"):
        process.call("hang", timeout=0.2)
    assert _gone(process.pid)
    assert _gone(child)


def test_an_interrupted_call_leaves_no_stale_answer(process: EngineProcess) -> None:
    with closing(stream_each([process], [Call("count", (3,))], 60)) as stream:
        assert next(stream) == (0, Part(1))
    with pytest.raises(EngineError):
        process.call("add", 1, 1, timeout=60)


@pytest.mark.parametrize("end", [EngineProcess.close, EngineProcess.kill])
def test_nothing_outlives_the_end(process: EngineProcess, end: Callable[[EngineProcess], None]) -> None:
    child = process.call("have_child", timeout=60)
    end(process)
    end(process)
    assert _gone(process.pid)
    assert _gone(child)


def test_calls_run_side_by_side_and_answer_in_order(pair: tuple[EngineProcess, EngineProcess]) -> None:
    calls = [Call("count", (3,)), Call("count", (50,))]
    messages = list(stream_each(pair, calls, 60))
    for process, count in enumerate((3, 50)):
        expected = [*(Part(done) for done in range(1, count + 1)), "counted"]
        assert [message for index, message in messages if index == process] == expected
    assert call_each(pair, calls, 60) == ["counted", "counted"]
    assert call_each(pair, [Call("add", (1, 2)), Call("add", ("a", "b"))], 60) == [3, "ab"]


def test_one_failure_is_reported_when_all_have_answered(pair: tuple[EngineProcess, EngineProcess]) -> None:
    with pytest.raises(EngineError, match="no such thing"):
        call_each(pair, [Call("fail", ()), Call("add", (1, 2))], 60)
    assert call_each(pair, [Call("add", (i, 1)) for i in range(2)], 60) == [1, 2]


def test_one_death_ends_the_others(pair: tuple[EngineProcess, EngineProcess]) -> None:
    with pytest.raises(EngineError, match="last words"):
        call_each(pair, [Call("die", ()), Call("hang", ())], 60)
    assert all(_gone(each.pid) for each in pair)


def test_a_process_that_stands_still_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_process, "_MESSAGE_SECONDS", 1)
    monkeypatch.setattr(engine_process, "_GRACE", 0.2)
    still = _start(tmp_path)
    os.kill(still.pid, signal.SIGSTOP)
    with pytest.raises(EngineError, match="stands still in the middle of a message"):
        still.call("swallow", bytes(10 << 20), timeout=60)
    assert _gone(still.pid)


TRAINER = """
import os, sys
sys.path.insert(0, sys.argv[1])
from populora.rollouts import process
served = process.EngineProcess("served_here", {**os.environ, "PYTHONPATH": sys.argv[1]})
child = served.call("have_child", timeout=60)
print(served.pid, child, flush=True)
served.call("hang", timeout=600)
"""


def test_a_killed_trainer_leaves_no_process_even_in_the_middle_of_a_call(tmp_path: Path) -> None:
    (tmp_path / "served_here.py").write_text(
        SERVED.replace("serve(Served", "process._GRACE = 0.2\nserve(Served")
    )
    trainer = subprocess.Popen(
        [sys.executable, "-c", TRAINER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert trainer.stdout is not None
    pids = [int(word) for word in trainer.stdout.readline().split()]
    time.sleep(0.2)
    trainer.kill()
    trainer.communicate()
    assert all(map(_gone, pids))
