"""Many programs, a tenth of them attacks: what the sandbox loses, what grows, and whether any verdict changes.

The honest programs run alone first, then again among the attacks, and their results are compared. Memory is resident,
of the zygotes and of this process; descriptors and processes are those of this process.

    python benchmarks/verifier_soak.py [--programs 50000] [--workers 2]
"""

import argparse
import asyncio
import logging
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

from populora.verifier.pool import ZygotePool
from populora.verifier.sandbox import Failure, Job, Limits, Outcome, Value

LIMITS = Limits(cpu_seconds=0.2, wall_seconds=30, memory_mib=128, literal_chars=500)
BRIEF = Limits(cpu_seconds=0.2, wall_seconds=0.3, memory_mib=128, literal_chars=500)
HONEST = (
    "return [x * i for i in range(9)]",
    "return {i: i % 3 for i in range(x % 11)}",
    "return sorted(str(x * 7919))",
    "from collections import Counter\n    return Counter(str(x ** 5))",
    "import re\n    return re.findall(r'[1-4]+', str(x ** 9))",
    "return 6 // (x % 5)",
    "return {1, x, -x}",
    "return f(x + 1) if x < 50 else str(x).zfill(9)",
)
ATTACKS = (
    ("while True: pass", LIMITS, 2),
    ("import time\n    time.sleep(60)", BRIEF, 1),
    ("keep = []\n    while True: keep.append(bytearray(1 << 24))", LIMITS, 8),
    ("import os\n    for _ in range(50): os.fork()", LIMITS, 8),
    ("import threading\n    threading.Thread(target=f, args=(x,)).start()", LIMITS, 8),
    ("import os\n    os._exit(3)", LIMITS, 8),
    ("import os\n    os.kill(os.getppid(), 9)", LIMITS, 8),
    ("import os\n    os.closerange(0, 64)\n    return 1", LIMITS, 8),
    ("import os\n    for _ in range(99): os.write(3, b'A' * 65536)", LIMITS, 8),
    ("return 'A' * 10**7", LIMITS, 8),
    ("import sys\n    sys.setrecursionlimit(10**9)\n    return f(x)", LIMITS, 2),
    ("import builtins\n    builtins.sorted = builtins.str = None\n    return x", LIMITS, 8),
    (
        "import gc\n    for thing in gc.get_objects():\n        if type(thing) is dict: thing.clear()",
        LIMITS,
        4,
    ),
    ("import sys\n    sys.modules.clear()\n    return 1", LIMITS, 8),
    ("return type('T', (), {'__eq__': lambda s, o: True})()", LIMITS, 8),
)
"""Program, limits, and how often it comes relative to the others."""


@dataclass(frozen=True)
class Usage:
    """What is held at one time."""

    zygote_mib: float
    own_mib: float
    descriptors: int
    zygote_descriptors: int
    processes: int

    @staticmethod
    def of(pool: ZygotePool) -> "Usage":
        """Look at the processes of a pool and at this one."""
        own, zygotes = psutil.Process(), [psutil.Process(pid) for pid in pool.pids]
        return Usage(
            max(each.memory_info().rss for each in zygotes) / 2**20,
            own.memory_info().rss / 2**20,
            len(os.listdir("/proc/self/fd")),
            max(each.num_fds() for each in zygotes),
            len(own.children(recursive=True)),
        )


def job(bodies: Sequence[str], index: int) -> Job:
    """Return the honest program of an index."""
    return Job(f"def f(x):\n    {bodies[index % len(bodies)]}", (str(index % 977 + 2),), LIMITS)


async def soak(pool: ZygotePool, jobs: Sequence[Job]) -> tuple[list[tuple[Outcome, ...]], list[Usage]]:
    """Run jobs, and look at what is held a hundred times, between programs."""
    outcomes: list[tuple[Outcome, ...]] = []
    usages = []
    share = max(1, len(jobs) // 100)
    for start in range(0, len(jobs), share):
        outcomes += [run.outcomes for run in await pool.run(jobs[start : start + share])]
        usages.append(Usage.of(pool))
    return outcomes, usages


def main() -> None:
    """Run both and write what was found; the exit code says whether all is as it should be."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", type=int, default=50_000)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    logging.getLogger("populora.verifier.pool").setLevel(logging.ERROR)
    rng = random.Random(0)
    attacks = [Job(f"def f(x):\n    {body}", ("1",), limits) for body, limits, _ in ATTACKS]
    drawn = rng.choices(attacks, [weight for *_, weight in ATTACKS], k=args.programs // 10)
    honest = [job(HONEST, index) for index in range(args.programs - len(drawn))]
    mixed = [*enumerate(honest), *((None, attack) for attack in drawn)]
    rng.shuffle(mixed)
    pool = ZygotePool(args.workers)
    with asyncio.Runner() as runner:
        runner.run(pool.start())
        alone, _ = runner.run(soak(pool, honest))
        before = time.perf_counter()
        found, usages = runner.run(soak(pool, [each for _, each in mixed]))
        seconds = time.perf_counter() - before
    among = {index: outcome for (index, _), outcome in zip(mixed, found, strict=True) if index is not None}
    changed = [index for index, outcome in enumerate(alone) if among[index] != outcome]
    endings = Counter(
        outcome[0].category if isinstance(outcome[0], Failure) else "value"
        for (index, _), outcome in zip(mixed, found, strict=True)
        if index is None
    )
    values = sum(isinstance(outcome[0], Value) for outcome in alone)
    pool.close()
    write = sys.stdout.write
    write(
        f"{len(mixed)} programs, {len(drawn)} of them attacks, in {seconds:.0f} s; {values} honest ones give a value\n"
    )
    write(f"restarts {pool.restarts}; verdicts that changed among attacks: {len(changed)}\n")
    write("".join(f"  attack ended as {category}: {count}\n" for category, count in endings.most_common()))
    for name in Usage.__dataclass_fields__:
        series = [getattr(usage, name) for usage in usages]
        early = max(series[: max(1, len(series) // 10)])
        write(
            f"{name:20} first tenth at most {early:8.1f}, ever at most {max(series):8.1f}, last {series[-1]:8.1f}\n"
        )
    left = psutil.Process().children(recursive=True)
    write(f"processes left after close: {len(left)}\n")
    raise SystemExit(bool(pool.restarts or changed or left))


if __name__ == "__main__":
    main()
