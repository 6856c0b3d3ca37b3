"""Random streams derived from what they are for, so that none has a state to lose.

Every stream is a function of the run's seed and a key such as ``("match", iteration)``. A resumed run
therefore draws what the uninterrupted one would have drawn.
"""

import hashlib
import os
import random


def run_seed() -> int:
    """Return the seed given to Lightning's ``seed_everything``, 0 when there was none."""
    return int(os.environ.get("PL_GLOBAL_SEED", "0"))


def derive(*key: str | int) -> int:
    """Return an integer in [0, 2**31) that depends on the whole key and nothing else."""
    digest = hashlib.sha256(repr(key).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def stream(*key: str | int) -> random.Random:
    """Return a fresh generator that depends on the whole key and nothing else."""
    return random.Random(repr(key))
