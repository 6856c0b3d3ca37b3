"""The pool: order, limits, cancellation, restarts, and that nothing outlives it."""

import ast
import asyncio
import random
import subprocess
import sys
import time

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from populora.errors import VerifierError
from populora.tasks.literals import canonical
from populora.verifier import pool as pool_module
from populora.verifier.encoding import NotLiteral, literal
from populora.verifier.pool import ZygotePool
from populora.verifier.sandbox import Failure, Job, Limits, Value

HANG = Job("import time\ndef f(x):\n    time.sleep(600)", ("0",), Limits(wall_seconds=600))
EXPRESSIONS = (
    "x[::-1]", "sorted(x)", "[i * n for i in x]", "sum(x) % (abs(n) + 1)", "{i: x.count(i) for i in x}", "set(x) - {n}",
    "tuple(x[: n % 4])", "' '.join(map(str, x))", "[x, [n], ()]", "{'a': {n: [1.5, None]}, 'b': x}", "max(x) / n",
    "bytes(i % 256 for i in x)", "[n > i for i in x]", "str(x) * (n % 3)", "n ** 7", "-n * 0.0", "x[n]", "{}", "set()",
    "(n,)", "next(i for i in x if i > n)", "[chr(200 + i % 50) for i in x]", "divmod(n, len(x))", "x and n",
)  # fmt: skip


def test_results_match_a_plain_interpreter(bench):
    rng = random.Random(0)
    jobs = []
    for _ in range(250):
        first, second = rng.choices(EXPRESSIONS, k=2)
        program = f"def g(x, n):\n    return {first}\ndef f(x, n):\n    return [g(x, n), {second}]"
        x, n = [rng.randint(-9, 9) for _ in range(rng.randint(1, 6))], rng.randint(-5, 9)
        jobs.append(Job(program, (f"{x}, {n}", f"{x[::-1]}, {n}")))
    results = bench.outcomes(jobs)
    assert sum(isinstance(outcome, Value) for outcomes in results for outcome in outcomes) > 300
    assert [describe(outcome) for outcomes in results for outcome in outcomes] == [
        plain_result(job.program, arguments) for job in jobs for arguments in job.inputs
    ]


def describe(outcome):
    return outcome.text if isinstance(outcome, Value) else outcome.category


def plain_result(program, arguments):
    namespace = {}
    exec(program, namespace)  # noqa: S102
    try:
        return canonical(repr(namespace["f"](*ast.literal_eval(f"({arguments},)"))))
    except Exception as error:  # noqa: BLE001
        return f"exception: {type(error).__name__}"


atoms = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.binary()
)
keys = st.recursive(atoms, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)
values = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(keys, inner, max_size=3)
        | st.sets(keys, max_size=3)
    ),
    max_leaves=8,
)


@given(values)
@settings(max_examples=60, deadline=None)
def test_literals_are_written_as_they_are_read(value):
    text = literal(value, 10_000)
    read = ast.literal_eval(text)
    assert read == value
    assert canonical(text) == canonical(repr(value))


@pytest.mark.parametrize("value", [123, -1.5, "a'b", b"ab", [1, [2]], (1,), {1: "a"}, {1}, set(), None])
def test_the_longest_literal_is_exact(value):
    size = len(repr(value))
    assert literal(value, size) == repr(value)
    with pytest.raises(NotLiteral, match="long"):
        literal(value, size - 1)


def test_results_keep_the_order_of_jobs(bench):
    slow = Job("def f(x):\n    return len([i for i in range(2_000_000)])", ("0",))
    jobs = [slow] + [Job("def f(x):\n    return x", (str(i),)) for i in range(20)]
    assert bench.outcomes(jobs) == [(Value("2000000"),)] + [(Value(str(i)),) for i in range(20)]


def test_each_input_meets_the_program_afresh(bench):
    program = "seen = []\ndef f(x, log=[]):\n    seen.append(x)\n    log.append(x)\n    return seen + log"
    assert bench.outcomes([Job(program, ("1", "2"))]) == [(Value("[1, 1]"), Value("[2, 2]"))]


def test_a_crash_takes_along_the_inputs_after_it(bench):
    program = "import os\ndef f(x):\n    return x if x != 2 else os._exit(1)"
    (outcomes,) = bench.outcomes([Job(program, ("1", "2", "3"))])
    assert [describe(outcome) for outcome in outcomes] == ["1", "crash: exit", "crash: exit"]


def test_an_exception_concerns_its_own_input_only(bench):
    (outcomes,) = bench.outcomes([Job("def f(x):\n    return 6 // x", ("1", "0", "3"))])
    assert [describe(outcome) for outcome in outcomes] == ["6", "exception: ZeroDivisionError", "2"]


def test_cpu_time_decides_a_timeout(bench):
    (run,) = bench.loop.call(
        bench.pool.run([Job("def f(x):\n    while True: pass", ("0",), Limits(cpu_seconds=0.2))])
    )
    assert run.outcomes == (Failure("timeout"),)
    assert 0.2 <= run.cpu_seconds < 0.4


def test_waiting_does_not_count_as_cpu_time(bench):
    nap = Job("import time\ndef f(x):\n    time.sleep(0.6)\n    return x", ("7",), Limits(cpu_seconds=0.3))
    assert bench.outcomes([nap]) == [(Value("7"),)]


def test_modules_of_real_programs_are_there(bench):
    program = """
from __future__ import annotations
import collections.abc, heapq, re, math, bisect, string, itertools, functools, operator, statistics, fractions, decimal
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, get_type_hints

@dataclass(order=True)
class P:
    a: int
    b: list[int] = field(default_factory=list)

class C(Enum):
    RED = 1

class T(NamedTuple):
    x: int

def f(x):
    hints = sorted(get_type_hints(P))
    return hints, P(1) < P(2), C(1).name, tuple(T(3)), "é".encode("utf-16-le"), str(decimal.Decimal(1) / 3)
"""
    expected = "(['a', 'b'], True, 'RED', (3,), b'\\xe9\\x00', '0.3333333333333333333333333333')"
    assert bench.outcomes([Job(program, ("0",))]) == [(Value(expected),)]


def test_the_hash_seed_sets_the_order_of_sets():
    job = Job(
        "def f(x):\n    return list({'alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta', 'eta'})", ("0",)
    )
    orders = []
    for seed in (1, 1, 2):
        pool = ZygotePool(1, hash_seed=seed)
        (run,) = asyncio.run(pool.run([job]))
        pool.close()
        orders.append(run.outcomes)
    assert orders[0] == orders[1] != orders[2]


def test_jobs_are_taken_as_results_are_consumed(bench):
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield Job("def f(x):\n    return x", ("1",))

    async def consume(count):
        stream = bench.pool.stream(endless())
        for _ in range(count):
            assert (await anext(stream))[1].outcomes == (Value("1"),)
        await stream.aclose()

    bench.loop.call(consume(10))
    assert 10 <= taken <= 10 + 2


def test_closing_a_stream_ends_what_runs(bench):
    async def cancel():
        stream = bench.pool.stream([Job("def f(x):\n    return x", ("1",)), HANG, HANG])
        assert (await anext(stream))[1].outcomes == (Value("1"),)
        children = await running_programs(bench.pool, 1)
        await stream.aclose()
        return children

    children = bench.loop.call(cancel())
    assert children
    assert not wait_for_end(children)
    assert bench.outcomes([Job("def f(x):\n    return x", ("5",))] * 4) == [(Value("5"),)] * 4


async def running_programs(pool, count):
    """Process ids of zygotes' children, once there are ``count``."""
    while True:
        found = [child for pid in pool.pids for child in psutil.Process(pid).children()]
        if len(found) >= count:
            return found
        await asyncio.sleep(0.02)


def wait_for_end(processes, seconds=10):
    """Those of ``processes`` that still run after a while."""
    end = time.monotonic() + seconds
    alive = list(processes)
    while alive and time.monotonic() < end:
        alive = [p for p in alive if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
        time.sleep(0.02)
    return alive


def test_a_killed_zygote_is_replaced_and_its_program_run_again(bench, caplog):
    jobs = [Job("def f(x):\n    return sum(range(200_000)) + x", (str(i),)) for i in range(60)]

    async def sabotage():
        results = {}
        async for index, run in bench.pool.stream(jobs):
            results[index] = run.outcomes
            if index in (10, 30):
                psutil.Process(bench.pool.pids[0]).kill()
        return [results[index] for index in range(len(jobs))]

    lost = bench.pool.restarts
    assert bench.loop.call(sabotage()) == [(Value(str(19999900000 + i)),) for i in range(60)]
    assert bench.pool.restarts - lost == 2
    assert "started again" in caplog.text


def test_a_zygote_that_hangs_is_replaced(bench, monkeypatch):
    monkeypatch.setattr(pool_module, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(pool_module, "STOP_SECONDS", 0.2)
    (stopped, *_) = [psutil.Process(pid) for pid in bench.pool.pids]
    stopped.suspend()
    jobs = [Job("def f(x):\n    return x", (str(i),), Limits(wall_seconds=0.5)) for i in range(6)]
    assert bench.outcomes(jobs) == [(Value(str(i)),) for i in range(6)]
    assert not stopped.is_running()


def test_a_sandbox_that_cannot_start_is_an_error(monkeypatch):
    monkeypatch.setattr(pool_module, "_COMMAND", (sys.executable, "-c", "raise SystemExit(3)"))
    pool = ZygotePool(1)
    with pytest.raises(VerifierError, match="does not start"):
        asyncio.run(pool.run([Job("def f(x):\n    return x", ("1",))]))
    assert pool.pids == ()


def test_a_sandbox_that_does_not_hold_a_program_is_refused(monkeypatch):
    leak = Job("def f(names):\n    return ['open a file']", ("0",))
    monkeypatch.setattr(pool_module, "probe", lambda confined: leak)
    pool = ZygotePool(1)
    with pytest.raises(VerifierError, match=r"does not hold.*open a file"):
        asyncio.run(pool.run([Job("def f(x):\n    return x", ("1",))]))
    assert pool.pids == ()


def test_close_leaves_no_process():
    async def use(pool):
        await pool.start()
        task = asyncio.create_task(pool.run([HANG, HANG]))
        processes = [psutil.Process(pid) for pid in pool.pids] + await running_programs(pool, 2)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return processes

    pool = ZygotePool(2)
    processes = asyncio.run(use(pool))
    pool.close()
    assert len(processes) == 4
    assert not wait_for_end(processes)


ORPHAN_MAKER = """
import asyncio, sys
from populora.verifier.pool import ZygotePool
from populora.verifier.sandbox import Job, Limits

async def main():
    pool = ZygotePool(2)
    await pool.start()
    print(*pool.pids, flush=True)
    await pool.run([Job("import time\\ndef f(x):\\n    time.sleep(600)", ("0",), Limits(wall_seconds=600))] * 2)

asyncio.run(main())
"""


def test_no_process_outlives_a_killed_trainer():
    with subprocess.Popen([sys.executable, "-c", ORPHAN_MAKER], stdout=subprocess.PIPE, text=True) as trainer:
        zygotes = [psutil.Process(int(pid)) for pid in trainer.stdout.readline().split()]
        programs = []
        while len(programs) < 2:
            programs = [child for process in zygotes for child in process.children()]
            time.sleep(0.02)
        trainer.kill()
    assert not wait_for_end([*zygotes, *programs])
