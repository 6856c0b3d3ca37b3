"""What happens where layers are missing, and that the layers are what they are said to be."""

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from populora.errors import VerifierError
from populora.verifier.pool import ZygotePool
from populora.verifier.protocol import REQUIRED

HERE = Path(__file__).parent
WITHOUT_SECCOMP = [sys.executable, str(HERE / "restrict.py"), "noseccomp", sys.executable, "-c"]
RUN = """
import asyncio, json, sys
from populora.errors import VerifierError
from populora.verifier.pool import ZygotePool
from populora.verifier.sandbox import Job, Limits

BODIES = ["return x + 1", "import os; os.fork()", "import threading; threading.Thread(target=f).start()",
          "return len(bytearray(1 << 32))", "while True: pass", "import os; return os.open('/etc/passwd', 0)",
          "import os; os.write(os.open('/tmp', os.O_TMPFILE | os.O_RDWR), b'x')",
          "import os; os.kill(os.getppid(), 9)", "import os; os.kill(os.getpid(), 11)"]

async def main(unsafe):
    pool = ZygotePool(1, unsafe=unsafe)
    jobs = [Job("def f(x):\\n    " + body, ("41",), Limits(cpu_seconds=0.3)) for body in BODIES]
    runs = await pool.run(jobs)
    outcomes = [getattr(run.outcomes[0], "text", None) or run.outcomes[0].category for run in runs]
    print(json.dumps([dict(pool.layers), outcomes, pool.restarts]))
    pool.close()

try:
    asyncio.run(main(sys.argv[1] == "unsafe"))
except VerifierError as error:
    print(json.dumps(str(error)))
"""


def without_seccomp(mode):
    done = subprocess.run([*WITHOUT_SECCOMP, RUN, mode], capture_output=True, text=True, check=True, cwd="/")
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def unsafe():
    return without_seccomp("unsafe")


def test_without_seccomp_nothing_runs():
    error = without_seccomp("confined")
    assert "seccomp (Invalid argument)" in error
    assert "data.verifier.unsafe: true" in error


def test_unsafe_does_without_seccomp_alone(unsafe):
    layers, _, _ = unsafe
    assert [name for name, reason in layers.items() if reason and name != "own user"] == ["seccomp"]


def test_limits_and_the_other_layers_hold_where_seccomp_is_missing(unsafe):
    _, outcomes, _ = unsafe
    assert outcomes == [
        "42",
        "exception: BlockingIOError",
        "exception: RuntimeError",
        "memory",
        "timeout",
        "exception: PermissionError",
        "exception: PermissionError",
        "crash: sandbox",
        "crash: SIGSEGV",
    ]


def test_a_zygote_that_its_program_kills_is_started_again(unsafe):
    assert unsafe[2] == 2


def test_another_system_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(VerifierError, match=r"needs Linux.*this is darwin.*container or virtual machine"):
        asyncio.run(ZygotePool(1).start())


def test_a_zygote_is_what_its_layers_say(bench):
    assert {layer.name for layer in bench.pool.layers if not layer.missing} >= {"limits", *REQUIRED}
    for pid in bench.pool.pids:
        status = dict(re.findall(r"(\w+):\s+(.*)", Path(f"/proc/{pid}/status").read_text()))
        assert status["NoNewPrivs"] == "1"
        assert (status["Seccomp"], status["Seccomp_filters"], status["Threads"]) == ("2", "1", "1")
        assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
        limits = Path(f"/proc/{pid}/limits").read_text()
        for name, most in (("core file size", 0), ("file size", 0), ("open files", 16), ("locked memory", 0)):
            assert re.search(rf"Max {name}\s+{most}\s+{most}\s", limits)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has an identity and a network to give up")
def test_programs_of_root_run_as_someone_else_with_no_network(bench):
    for pid in bench.pool.pids:
        assert min(psutil.Process(pid).uids()) >= 61_184
        assert os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net")
