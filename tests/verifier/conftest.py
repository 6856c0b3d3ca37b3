"""A running sandbox for the tests of this folder."""

from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest

from populora.verifier.background import LoopThread
from populora.verifier.pool import ZygotePool
from populora.verifier.sandbox import Job, Limits, Outcome

QUICK = Limits(cpu_seconds=1.0, wall_seconds=120, memory_mib=256, literal_chars=500)


class Bench:
    """A pool with a synchronous face."""

    def __init__(self) -> None:
        self.pool = ZygotePool(2)
        self.loop = LoopThread()
        self.loop.call(self.pool.start())

    def close(self) -> None:
        self.loop.close()
        self.pool.close()

    def outcomes(self, jobs: Sequence[Job]) -> list[tuple[Outcome, ...]]:
        return [run.outcomes for run in self.loop.call(self.pool.run(jobs))]

    def outcome(self, program: str, argument: str = "0", limits: Limits = QUICK) -> Outcome:
        """Run one program between two honest ones, whose results must not suffer."""
        honest = Job("def f(x):\n    return sorted(x, key=abs)", ("[3, -1, 2]",), QUICK)
        before, (outcome,), after = self.outcomes([honest, Job(program, (argument,), limits), honest])
        again = self.outcomes([honest, honest, honest])
        assert {outcome.text for (outcome,) in (before, after, *again)} == {"[-1, 2, 3]"}
        return outcome


@pytest.fixture(scope="session")
def bench() -> Iterator[Bench]:
    with closing(Bench()) as bench:
        yield bench
