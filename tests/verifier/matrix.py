"""Runs every attack in a sandbox between honest programs, and reports as JSON what came of them all.

A script, so that a test can run it as another user or under a container's limits.
"""

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parent))
from targets import attacks, report, targets

from populora.verifier.pool import ZygotePool
from populora.verifier.sandbox import Job, Limits, Value

LIMITS = Limits(cpu_seconds=0.2, wall_seconds=1.0, memory_mib=256, literal_chars=500)
HONEST = Job("def f(x):\n    return sorted(x, key=abs)", ("[3, -1, 2]",), replace(LIMITS, wall_seconds=30))


async def run(jobs: Sequence[Job]) -> dict[str, object]:
    """Run jobs with an honest program behind each."""
    pool = ZygotePool(4)
    await pool.start()
    processes = [psutil.Process(pid) for pid in pool.pids]
    before, open_before = [process.memory_info().rss for process in processes], _descriptors()
    runs = await pool.run([each for job in jobs for each in (job, HONEST)])
    result: dict[str, object] = {
        "layers": dict(pool.layers),
        "outcomes": [_describe(run.outcomes[0]) for run in runs[::2]],
        "honest": sum(run.outcomes == (Value("[-1, 2, 3]"),) for run in runs[1::2]),
        "restarts": pool.restarts,
        "left": [str(child) for each in processes for child in each.children(recursive=True)],
        "growth": max(each.memory_info().rss - then for each, then in zip(processes, before, strict=True)),
        "descriptors": _descriptors() - open_before,
    }
    pool.close()
    return result


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _describe(outcome: object) -> list[str]:
    return ["value", outcome.text] if isinstance(outcome, Value) else ["failure", str(outcome.category)]


def main() -> None:
    """Run and report."""
    programs = attacks()
    with targets() as aims:
        jobs = [Job(program, (repr(aims),), LIMITS) for _, program in programs.values()]
        result = asyncio.run(run(jobs))
        result["outcomes"] = dict(zip(programs, result["outcomes"], strict=True))
        result["canary"] = aims["canary"]
        result["loot"] = os.listdir(aims["loot"])
        result["victim"] = psutil.Process(aims["victim"]).status() == psutil.STATUS_SLEEPING
        result["children"] = [
            child.name() for child in psutil.Process().children() if child.pid != aims["victim"]
        ]
    report(result)


if __name__ == "__main__":
    main()
