"""Runs the command line in forked children that send themselves signals at given moments of the run.

A moment is the beginning of a stage, or an operation on a file below the run's folder or on the adapters in memory.
"""

import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

import populora.cli.launch  # noqa: F401  (imported once, for all children)
from populora.cli import main
from populora.datamodule import RolloutDataModule

OPERATIONS = {
    "open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.symlink", "os.truncate", "shutil.rmtree",
}  # fmt: skip


class Moments:
    """Counts moments and sends the signals that are due; file operations count in the main thread only."""

    def __init__(self, root: str, signals: dict[int, int]) -> None:
        self.count = 0
        self._places = (root, "/dev/shm/populora-")
        self._signals = signals
        self._pid = os.getpid()
        told = RolloutDataModule.tell

        def tell(module: RolloutDataModule, *stage: Any) -> None:
            self.strike()
            told(module, *stage)

        RolloutDataModule.tell = tell  # type: ignore[method-assign]
        sys.addaudithook(self._watch)

    def strike(self) -> None:
        """Count a moment."""
        self.count += 1
        if self.count in self._signals and os.getpid() == self._pid:
            os.kill(self._pid, self._signals[self.count])

    def _watch(self, event: str, arguments: tuple[Any, ...]) -> None:
        place = str(arguments[0]) if event in OPERATIONS and arguments else ""
        if place.startswith(self._places) and "tfevents" not in place:
            self.strike()


def child(order: dict[str, Any], said: int, report: Path) -> int:
    """Run one command and return its exit code."""
    os.dup2(said, 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.environ.update(order["environment"])
    moments = Moments(order["root"], {int(k): v for k, v in order["signals"]})
    try:
        return main(order["arguments"])
    except SystemExit as error:
        return int(error.code or 0)
    finally:
        report.write_text(str(moments.count))


def serve() -> None:
    """Read orders, one a line, and answer each with its outcome."""
    torch.set_num_threads(1)
    for line in sys.stdin:
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as said:
            report = Path(folder) / "moments"
            pid = os.fork()
            if pid == 0:
                code = 99
                try:
                    code = child(json.loads(line), said.fileno(), report)
                finally:
                    sys.stderr.flush()
                    os._exit(code)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            said.seek(0)
            outcome = {
                "pid": pid,
                "code": code,
                "moments": int(report.read_text()) if report.exists() else 0,
                "said": said.read().decode(errors="replace"),
            }
        sys.stdout.write(json.dumps(outcome) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    serve()
