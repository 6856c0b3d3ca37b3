"""A process that compares answers: a JSON line for each pair, a JSON line for each verdict.

It may hang, run out of memory or die at any pair; whoever started it notices and starts another.
"""

import json
import os
import resource
import sys
import time

CPU_SECONDS = 10
"""CPU time of one comparison; the kernel ends the process after it."""
_MEMORY = 4 * 2**30
"""Bytes of address space."""


def serve() -> None:
    """Answer until the input ends."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    import math_verify  # noqa: F401  (takes seconds, which no comparison should pay for)

    from populora.evaluation.mathematics.comparison import equal

    _limit(resource.RLIMIT_AS, _MEMORY)
    replies.write("ready\n")
    replies.flush()
    for line in sys.stdin:
        gold, answer, tolerance = json.loads(line)
        _limit(resource.RLIMIT_CPU, int(time.process_time()) + 1 + CPU_SECONDS)
        try:
            verdict: bool | str = equal(gold, answer, tolerance)
        except Exception as error:  # noqa: BLE001  (whatever SymPy raises is a verdict on the answer)
            verdict = type(error).__name__
        replies.write(json.dumps(verdict) + "\n")
        replies.flush()


def _limit(kind: int, amount: int) -> None:
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (amount if hard == resource.RLIM_INFINITY else min(amount, hard), hard))


if __name__ == "__main__":
    serve()
