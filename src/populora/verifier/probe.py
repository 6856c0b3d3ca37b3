"""A program that tries to get out: each zygote has to hold it before it runs anything else."""

from populora.verifier.sandbox import Job, Value

_PROGRAM = """
import os, socket

attempts = {
    "start a process": os.fork,
    "open a file": lambda: os.open("/", os.O_RDONLY),
    "look at a file": lambda: os.stat("/"),
    "signal a process": lambda: os.kill(os.getppid(), 0),
    "open a socket": socket.socket,
    "run a command": lambda: os.execv("/bin/true", ["true"]),
}

def f(names):
    done = []
    for name in names:
        try:
            attempts[name]()
        except OSError:
            continue
        done.append(name)
    return done
"""
_ALWAYS_HELD = ["start a process"]
_HELD = [*_ALWAYS_HELD, "open a file", "look at a file", "signal a process", "open a socket", "run a command"]

HELD = Value("[]")
"""The outcome of a probe that could do nothing."""


def probe(confined: bool) -> Job:
    """Return the job that tries what must fail; without confinement, resource limits are all that stops it."""
    return Job(_PROGRAM, (repr(_HELD if confined else _ALWAYS_HELD),))
