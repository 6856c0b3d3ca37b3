"""Adapters on their way from the bank to an engine."""

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from transformers import AutoModelForCausalLM

from populora.config import AdapterConfig, EngineConfig
from populora.errors import AdapterSyncError
from populora.population.bank import AdapterBank
from populora.records import Member, Role
from populora.rollouts import sync as sync_module
from populora.rollouts.engine import EngineBase, LoadedAdapter
from populora.rollouts.scripted import ScriptedEngine
from populora.rollouts.sync import AdapterSync

DTYPE = torch.bfloat16
TEACHER = Member("teacher-0", Role.TEACHER)
STUDENT = Member("student-0", Role.STUDENT)


class Stale(ScriptedEngine):
    """Goes on serving the first version of every adapter."""

    def _fingerprint(self, adapter: LoadedAdapter) -> str:
        self._first = getattr(self, "_first", {})
        return super()._fingerprint(self._first.setdefault(adapter.member, adapter))


@pytest.fixture(scope="module")
def bank(tiny_base: Path) -> AdapterBank:
    base = AutoModelForCausalLM.from_pretrained(tiny_base, dtype=torch.float32)
    return AdapterBank(base, [TEACHER.name, STUDENT.name], AdapterConfig(rank=4, alpha=12.0), seed=0)


def _started(engine: ScriptedEngine, tiny_base: Path) -> ScriptedEngine:
    engine.start(EngineBase(tiny_base, DTYPE, rank=4, live_adapters=2, needed_len=64))
    return engine


@pytest.fixture
def engine(tiny_base: Path) -> ScriptedEngine:
    return _started(ScriptedEngine(EngineConfig(name="scripted")), tiny_base)


@pytest.fixture
def sync(engine: ScriptedEngine, tmp_path: Path) -> Iterator[AdapterSync]:
    made = AdapterSync(engine, DTYPE, tmp_path)
    yield made
    made.close()


def _advanced(member: Member) -> Member:
    return Member(member.name, member.role, version=member.version + 1)


def _train(bank: AdapterBank, member: Member) -> None:
    with torch.no_grad():
        for parameter in bank.parameters_of(member.name):
            parameter.add_(0.01)


def test_only_new_versions_travel(bank: AdapterBank, engine: ScriptedEngine, sync: AdapterSync) -> None:
    first = sync(bank, [TEACHER, STUDENT])
    assert first.loaded == (TEACHER, STUDENT)
    assert first.bytes > sum(p.numel() for p in bank.parameters_of(TEACHER.name)) * DTYPE.itemsize
    _train(bank, STUDENT)
    second = sync(bank, [TEACHER, _advanced(STUDENT)])
    assert (second.loaded, second.unchanged) == ((_advanced(STUDENT),), ())
    assert sync(bank, [TEACHER, _advanced(STUDENT)]).loaded == ()
    for member in (TEACHER, STUDENT):
        assert engine.fingerprint(member.name) == bank.fingerprint(member.name, DTYPE)


def test_a_new_version_of_the_same_weights_is_reported(bank: AdapterBank, sync: AdapterSync) -> None:
    sync(bank, [TEACHER])
    assert sync(bank, [_advanced(TEACHER)]).unchanged == (_advanced(TEACHER),)


def test_each_version_has_its_own_folder_and_old_ones_go(
    bank: AdapterBank, engine: ScriptedEngine, sync: AdapterSync
) -> None:
    sync(bank, [TEACHER])
    old = engine.adapters[TEACHER.name].path
    sync(bank, [_advanced(TEACHER)])
    assert engine.adapters[TEACHER.name].path != old
    assert not old.exists()


def test_an_engine_with_other_weights_is_found_out(
    tiny_base: Path, bank: AdapterBank, tmp_path: Path
) -> None:
    stale = _started(Stale(EngineConfig(name="scripted")), tiny_base)
    sync = AdapterSync(stale, DTYPE, tmp_path)
    kept = tmp_path / "kept"
    sync(bank, [TEACHER])
    shutil.copytree(stale.adapters[TEACHER.name].path, kept)
    stale._first[TEACHER.name] = LoadedAdapter(TEACHER.name, 0, kept, "")
    _train(bank, TEACHER)
    with pytest.raises(AdapterSyncError, match="does not hold version 1 of teacher-0"):
        sync(bank, [_advanced(TEACHER)])


def test_the_folder_goes_on_close(bank: AdapterBank, engine: ScriptedEngine, tmp_path: Path) -> None:
    sync = AdapterSync(engine, DTYPE, tmp_path)
    sync(bank, [TEACHER])
    assert len(list(tmp_path.iterdir())) == 1
    sync.close()
    assert not list(tmp_path.iterdir())


HOLD = """
import sys
from pathlib import Path
from populora.rollouts.sync import _PrivateFolder
folder = _PrivateFolder(Path(sys.argv[1]))
print(folder.path, flush=True)
sys.stdin.read()
"""


def test_a_killed_runs_folder_goes_with_the_next_run_but_a_living_ones_stays(
    engine: ScriptedEngine, tmp_path: Path
) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    folder = Path(holder.stdout.readline().strip())
    AdapterSync(engine, DTYPE, tmp_path).close()
    assert folder.is_dir()
    holder.kill()
    holder.communicate()
    AdapterSync(engine, DTYPE, tmp_path).close()
    assert not folder.exists()


def test_adapters_pass_through_memory_where_there_is_a_folder_in_memory(engine: ScriptedEngine) -> None:
    shared = Path("/dev/shm")
    if not (shared.is_dir() and os.access(shared, os.W_OK)):
        pytest.skip("no writable folder in memory")
    before = set(shared.iterdir())
    sync = AdapterSync(engine, DTYPE)
    created = [path for path in shared.iterdir() if path not in before and str(os.getpid()) in path.name]
    assert len(created) == 1
    sync.close()
    assert not created[0].exists()


def test_a_folder_removed_from_outside_is_made_again(
    bank: AdapterBank,
    engine: ScriptedEngine,
    sync: AdapterSync,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    sync(bank, [TEACHER, STUDENT])
    [private] = tmp_path.iterdir()
    shutil.rmtree(private)
    sync(bank, [_advanced(TEACHER), STUDENT])
    assert "removed from outside" in caplog.text
    assert engine.adapters[TEACHER.name].path.is_dir()
    assert (private / "lock").exists()


def test_a_restarted_engine_gets_every_adapter_again(
    bank: AdapterBank, engine: ScriptedEngine, sync: AdapterSync
) -> None:
    sync(bank, [TEACHER, STUDENT])
    engine.restart()
    assert sync(bank, [TEACHER, STUDENT]).loaded == (TEACHER, STUDENT)


def test_a_full_memory_is_explained(
    bank: AdapterBank, sync: AdapterSync, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(name: str, folder: Path, dtype: torch.dtype) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(bank, "export", full)
    with pytest.raises(AdapterSyncError, match=r"No space left on device.*--shm-size"):
        sync(bank, [TEACHER])


def test_short_memory_is_passed_by(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=64 << 20))
    assert sync_module._memory_folder() == tmp_path
