"""Programs per second, CPU time and waiting of the sandbox, against other ways to run a program.

Four take turns on the same programs: ``pool``, the sandbox with one input a program; ``pool x8``, with eight inputs that
share a child; ``process``, the pattern of evalplus, a guarded ``multiprocessing.Process`` for each program, forked
from a pool of workers; ``fresh``, a new interpreter for each program, without limits or confinement. CPU time is that of
every process involved, the caller included, and is the figure to trust on a busy machine. Then the pool runs 1000
programs, 4 of which burn CPU, hoard memory, sleep or write without end, and the wait for each of the others is told.

    python benchmarks/verifier.py [--programs 400] [--rounds 4] [--workers 2] [--loaded torch]
"""

import argparse
import asyncio
import contextlib
import faulthandler
import importlib
import io
import logging
import multiprocessing
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import psutil

from populora.verifier.pool import ZygotePool
from populora.verifier.sandbox import Job, Limits, Value

BODIES = (
    "return [x * i for i in range(9)]",
    "return ''.join(sorted(str(x * 7919)))",
    "return {i: i % 3 for i in range(x % 11)}",
    "return sum(i * i for i in range(x + 50))",
    "import math\n    return math.gcd(x, 360), math.factorial(x % 12)",
    "from collections import Counter\n    return dict(Counter(str(x ** 5)))",
    "import re\n    return re.findall(r'[1-4]+', str(x ** 9))",
    "n = x\n    while n > 1:\n        n = n // 2 if n % 2 == 0 else 3 * n + 1\n    return n",
)
ATTACKS = (
    "while True: pass",
    "keep = []\n    while True: keep.append(bytearray(1 << 24))",
    "import time\n    time.sleep(600)",
    "import os\n    while True: os.write(1, bytes(1 << 20))",
)
LIMITS = Limits(cpu_seconds=1.0, wall_seconds=3.0)
RUNNER = (
    "import ast, sys; space = {}; exec(sys.argv[1], space); print(space['f'](ast.literal_eval(sys.argv[2])))"
)


@dataclass
class Cost:
    """What one way of running programs has cost so far."""

    programs: int = 0
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0

    @contextlib.contextmanager
    def measured(self, programs: int, cpu: Callable[[], float]) -> Iterator[None]:
        """Add what happens inside."""
        cpu_before, before = cpu(), time.perf_counter()
        yield
        self.wall_seconds += time.perf_counter() - before
        self.cpu_seconds += cpu() - cpu_before
        self.programs += programs

    @property
    def rate(self) -> float:
        """Programs per second."""
        return self.programs / self.wall_seconds

    @property
    def cpu_ms(self) -> float:
        """Milliseconds of CPU time per program."""
        return 1000 * self.cpu_seconds / self.programs


def own_cpu() -> float:
    """CPU seconds of this process and of the children it has waited for."""
    usages = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def tree_cpu(pool: ZygotePool) -> float:
    """CPU seconds of this process, of the zygotes, and of the children that any of them has waited for."""
    times = [psutil.Process(pid).cpu_times() for pid in pool.pids]
    return own_cpu() + sum(t.user + t.system + t.children_user + t.children_system for t in times)


def run_fresh(workers: int, jobs: Sequence[Job]) -> None:
    """Run each program in an interpreter of its own."""

    def run(job: Job) -> None:
        command = [sys.executable, "-I", "-S", "-c", RUNNER, job.program, job.inputs[0]]
        subprocess.run(command, check=True, capture_output=True, timeout=60)

    with ThreadPoolExecutor(workers) as threads:
        list(threads.map(run, jobs))


def run_processes(workers: int, jobs: Sequence[Job]) -> None:
    """Run each program in a process forked for it by one of a pool of workers, and have it judge itself."""
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("fork")) as executor:
        if not all(executor.map(_judge, jobs)):
            raise SystemExit("a program failed in its process")


def _judge(job: Job) -> bool:
    """Fork a process for a program, wait for it, and read what it says of itself from shared memory."""
    progress, passed = multiprocessing.Value("i", 0), multiprocessing.Array("b", len(job.inputs))
    process = multiprocessing.Process(target=_run_guarded, args=(job, progress, passed))
    process.start()
    process.join(timeout=5)
    if process.is_alive():
        process.kill()
        process.join()
    return bool(progress.value) and all(passed[:])


def _run_guarded(job: Job, progress: Any, passed: Any) -> None:
    """Disarm this process by replacing functions, run the program in a folder of its own, and compare here."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(folder)
        rmdir, unlink, chdir = os.rmdir, os.unlink, os.chdir
        for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA, resource.RLIMIT_STACK):
            resource.setrlimit(kind, (4 << 30, resource.getrlimit(kind)[1]))
        faulthandler.disable()
        for name in (
            "kill",
            "system",
            "putenv",
            "remove",
            "fork",
            "chmod",
            "chown",
            "chroot",
            "rename",
            "getcwd",
        ):
            setattr(os, name, None)
        signal.setitimer(signal.ITIMER_REAL, 5)
        space: dict[str, Any] = {}
        exec(job.program, space)  # noqa: S102
        for index, argument in enumerate(job.inputs):
            space["f"](int(argument))
            passed[index] = True
            progress.value += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.rmdir, os.unlink, os.chdir = rmdir, unlink, chdir
        os.chdir("/")


async def waits(pool: ZygotePool, count: int) -> list[float]:
    """Run programs with a few attackers among them, and return the seconds from taking each other one to its result."""
    taken: dict[int, float] = {}

    def jobs() -> Iterator[Job]:
        for index in range(count):
            taken[index] = time.perf_counter()
            attack = attackers.get(index)
            yield Job(
                f"def f(x):\n    {attack or BODIES[index % len(BODIES)]}", (str(index % 97 + 2),), LIMITS
            )

    attackers = {(2 * i + 1) * count // (2 * len(ATTACKS)): attack for i, attack in enumerate(ATTACKS)}
    found = []
    async for index, _ in pool.stream(jobs()):
        if index not in attackers:
            found.append(time.perf_counter() - taken[index])
    return found


def main() -> None:
    """Run all and write a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", type=int, default=400, help="for each way, over all rounds")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--loaded", help="module to import first: what a trainer that grades has in its process"
    )
    args = parser.parse_args()
    if args.loaded:
        importlib.import_module(args.loaded)
    logging.getLogger("populora.verifier.pool").setLevel(logging.ERROR)
    share = args.programs // args.rounds
    pool = ZygotePool(args.workers)
    costs = {name: Cost() for name in ("pool", "pool x8", "process", "fresh")}
    write = sys.stdout.write
    with asyncio.Runner() as runner:

        def run_pool(jobs: Sequence[Job]) -> None:
            runs = runner.run(pool.run(jobs))
            if not all(isinstance(outcome, Value) for run in runs for outcome in run.outcomes):
                raise SystemExit("a program failed")

        before = time.perf_counter()
        runner.run(pool.start())
        write(f"{args.workers} workers started in {time.perf_counter() - before:.2f} s\n")
        for start in range(0, share * args.rounds, share):
            numbers = range(start, start + share)
            programs = [(f"def f(x):\n    {BODIES[i % len(BODIES)]}", i % 97 + 2) for i in numbers]
            single = [Job(program, (str(x),)) for program, x in programs]
            eight = [Job(program, tuple(str(x + j) for j in range(8))) for program, x in programs]
            zygote_cpu = partial(tree_cpu, pool)
            with costs["pool"].measured(share, zygote_cpu):
                run_pool(single)
            with costs["pool x8"].measured(share, zygote_cpu):
                run_pool(eight)
            with costs["process"].measured(share, own_cpu):
                run_processes(args.workers, single)
            with costs["fresh"].measured(share, own_cpu):
                run_fresh(args.workers, single)
        found = sorted(runner.run(waits(pool, 1000 if args.programs >= 200 else 40)))
    pool.close()
    for name, cost in costs.items():
        times = costs["pool"].rate / cost.rate
        write(
            f"{name:8} {cost.rate:8.0f} programs/s {cost.cpu_ms:8.2f} ms CPU each; pool is {times:.1f} times as fast\n"
        )
    eight_inputs = costs["pool x8"]
    write(f"pool x8 {8 * eight_inputs.rate:9.0f} inputs/s {eight_inputs.cpu_ms / 8:8.2f} ms CPU each\n")
    p50, p99 = statistics.median(found), found[int(0.99 * len(found))]
    write(
        f"among 4 attackers, {len(found)} programs waited {1000 * p50:.1f} ms (p50), {1000 * p99:.1f} ms (p99)\n"
    )


if __name__ == "__main__":
    main()
