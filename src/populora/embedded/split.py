"""The division of programs into training and held-out ones."""

import hashlib

HELD_OUT_ONE_IN = 20


def is_held_out(program: str) -> bool:
    """Whether a program is kept out of training, decided by its text alone."""
    digest = hashlib.sha256(program.strip().encode()).digest()
    return int.from_bytes(digest, "big") % HELD_OUT_ONE_IN == 0
