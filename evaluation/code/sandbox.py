"""The sandbox as the code suites use it: what benchmarks' solutions import is there, and callers need no event loop."""

from collections.abc import Sequence
from contextlib import ExitStack, closing

from populora.config import cores
from populora.verifier.background import LoopThread
from populora.verifier.pool import ZygotePool
from populora.verifier.sandbox import Job, Run

MODULES = (
    "argparse", "cmath", "doctest", "inspect", "io", "logging", "os", "pathlib", "pickle", "sched", "secrets", "shutil",
    "sys", "tempfile", "threading", "timeit", "traceback", "unittest", "uuid", "weakref", "xml.etree.ElementTree", "zlib",
    "numpy", "numpy.fft", "numpy.lib.stride_tricks", "numpy.linalg", "numpy.ma", "numpy.polynomial", "numpy.random",
)  # fmt: skip
"""What programs may import beside the zygotes' own choice: nothing is banned, since the system calls are."""


class CodeSandbox:
    """Runs jobs, many at a time; starts with its first use, and may be used again after it was closed."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._running: tuple[LoopThread, ZygotePool] | None = None

    def run(self, jobs: Sequence[Job]) -> list[Run]:
        """Run all jobs; the results are in the jobs' order.

        Raises:
            VerifierError: the sandbox cannot be started.
        """
        if not jobs:
            return []
        if self._running is None:
            pool = self._stack.enter_context(closing(ZygotePool(cores(), modules=MODULES)))
            self._running = self._stack.enter_context(closing(LoopThread())), pool
        loop, pool = self._running
        return loop.call(pool.run(jobs))

    def close(self) -> None:
        """End the sandbox's processes; without effect when none run."""
        self._running = None
        self._stack.close()
