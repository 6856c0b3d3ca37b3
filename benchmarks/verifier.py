"""Programs per second and CPU time per program: the sandbox's pool against a fresh interpreter for each program.

The two take turns on the same programs. CPU time is that of every process involved, the caller included, and
is the figure to trust on a busy machine. The fresh interpreters run without limits or confinement.

    python benchmarks/verifier.py [--programs 400] [--rounds 4] [--workers 2]
"""

import argparse
import asyncio
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import psutil

from populora.verifier.pool import ZygotePool
from populora.verifier.sandbox import Job, Value

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
RUNNER = (
    "import ast, sys; space = {}; exec(sys.argv[1], space); print(space['f'](ast.literal_eval(sys.argv[2])))"
)


@dataclass
class Cost:
    """What one way of running programs has cost so far."""

    programs: int = 0
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0


def own_cpu() -> float:
    """CPU seconds of this process and of the children it has waited for."""
    usages = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def tree_cpu(pids: Sequence[int]) -> float:
    """CPU seconds of this process, of the zygotes, and of the children that any of them has waited for."""
    times = [psutil.Process(pid).cpu_times() for pid in pids]
    return own_cpu() + sum(t.user + t.system + t.children_user + t.children_system for t in times)


def measure(
    cost: Cost, jobs: Sequence[Job], run: Callable[[Sequence[Job]], None], cpu: Callable[[], float]
) -> None:
    """Add one run over ``jobs`` to ``cost``."""
    cpu_before, before = cpu(), time.perf_counter()
    run(jobs)
    cost.wall_seconds += time.perf_counter() - before
    cost.cpu_seconds += cpu() - cpu_before
    cost.programs += len(jobs)


def run_fresh(workers: int, jobs: Sequence[Job]) -> None:
    """Run each program in an interpreter of its own."""

    def run(job: Job) -> None:
        command = [sys.executable, "-I", "-S", "-c", RUNNER, job.program, job.inputs[0]]
        subprocess.run(command, check=True, capture_output=True, timeout=60)

    with ThreadPoolExecutor(workers) as threads:
        list(threads.map(run, jobs))


def main() -> None:
    """Run both and write a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", type=int, default=400, help="for each way, over all rounds")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    share = args.programs // args.rounds
    pool, costs = ZygotePool(args.workers), {"pool": Cost(), "fresh": Cost()}
    with asyncio.Runner() as runner:

        def run_pool(jobs: Sequence[Job]) -> None:
            runs = runner.run(pool.run(jobs))
            if not all(isinstance(run.outcomes[0], Value) for run in runs):
                raise SystemExit("a program failed")

        before = time.perf_counter()
        runner.run(pool.start())
        sys.stdout.write(f"{args.workers} workers started in {time.perf_counter() - before:.2f} s\n")
        for start in range(0, share * args.rounds, share):
            jobs = [
                Job(f"def f(x):\n    {BODIES[i % len(BODIES)]}", (str(i + 2),))
                for i in range(start, start + share)
            ]
            measure(costs["pool"], jobs, run_pool, lambda: tree_cpu(pool.pids))
            measure(costs["fresh"], jobs, partial(run_fresh, args.workers), own_cpu)
    pool.close()
    for name, cost in costs.items():
        rate, cpu = cost.programs / cost.wall_seconds, 1000 * cost.cpu_seconds / cost.programs
        sys.stdout.write(f"{name:6} {rate:8.0f} programs/s {cpu:8.2f} ms CPU per program\n")


if __name__ == "__main__":
    main()
