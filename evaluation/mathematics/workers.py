"""Processes that compare answers and may be killed doing it."""

import json
import os
import queue
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from populora.errors import VerifierError
from populora.evaluation.mathematics.worker import CPU_SECONDS

_START_SECONDS = 300.0
_WALL_SECONDS = 120.0
"""Wall-clock backstop of one comparison; what decides is its CPU time."""


@dataclass(frozen=True)
class Pair:
    """An answer to compare with the right one."""

    gold: str
    answer: str
    tolerance: float = 0.0


@dataclass(frozen=True)
class Comparison:
    """Whether an answer is the right one."""

    equal: bool
    failure: str = ""
    """Why it could not be told."""


class Comparer:
    """Compares answers in worker processes, started when first needed.

    A comparison that takes too long, or kills its worker, is a failure of its own pair; the worker is replaced.

    Args:
        workers: Processes; none: one per core, at most four.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._workers = [_Worker() for _ in range(workers or min(os.cpu_count() or 1, 4))]

    def __call__(self, pairs: Sequence[Pair]) -> list[Comparison]:
        """Compare all pairs, in order.

        Raises:
            VerifierError: a worker does not start.
        """
        idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        for worker in self._workers:
            idle.put(worker)

        def compare(pair: Pair) -> Comparison:
            worker = idle.get()
            try:
                return worker.compare(pair)
            finally:
                idle.put(worker)

        with ThreadPoolExecutor(len(self._workers)) as threads:
            return list(threads.map(compare, pairs))

    def close(self) -> None:
        """End the workers; may be called twice."""
        for worker in self._workers:
            worker.close()


class _Worker:
    """One process, started when it is first needed and after each loss."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def compare(self, pair: Pair) -> Comparison:
        process = self._process or self._start()
        request = json.dumps([pair.gold, pair.answer, pair.tolerance]) + "\n"
        reply = _exchange(process, request.encode(), _WALL_SECONDS)
        if reply is None:
            self.close()
            timed_out = process.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
            return Comparison(
                False, f"timeout after {CPU_SECONDS} s" if timed_out else "the comparison crashed"
            )
        verdict = json.loads(reply)
        return (
            Comparison(verdict) if isinstance(verdict, bool) else Comparison(False, f"unreadable: {verdict}")
        )

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "populora.evaluation.mathematics.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONHASHSEED": "0"},
            bufsize=0,
        )
        self._process = process
        if _exchange(process, b"", _START_SECONDS) is None:
            self.close()
            raise VerifierError(
                f"the process that compares mathematical answers did not start (exit code {process.returncode}); "
                "is math-verify installed?"
            )
        return process

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def _exchange(process: subprocess.Popen[bytes], request: bytes, seconds: float) -> bytes | None:
    """Send a line and return the line that comes back; None when the process ends or does not answer in time."""
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the worker has no pipes")
    deadline = time.monotonic() + seconds
    try:
        process.stdin.write(request)
    except BrokenPipeError:
        return None
    reply = b""
    while not reply.endswith(b"\n"):
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
        chunk = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
        if not chunk:
            return None
        reply += chunk
    return reply
