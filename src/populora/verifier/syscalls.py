"""System call filters for seccomp: the calls that computing needs, and those of a zygote beside them.

What is not listed fails with EPERM, so neither a kernel's new calls nor a forgotten old one open a door.
"""

import errno
import struct
from collections.abc import Iterable, Mapping

COMPUTING = {
    # name: (x86-64, arm64)
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "lseek": (8, 62), "mmap": (9, 222), "mprotect": (10, 226),
    "munmap": (11, 215), "brk": (12, 214), "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139), "sched_yield": (24, 124), "mremap": (25, 216), "madvise": (28, 233),
    "nanosleep": (35, 101), "setitimer": (38, 103), "getpid": (39, 172), "exit": (60, 93),
    "gettimeofday": (96, 169), "getrusage": (98, 165),
    "times": (100, 153), "sigaltstack": (131, 132), "gettid": (186, 178), "futex": (202, 98),
    "restart_syscall": (219, 128), "clock_gettime": (228, 113), "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115), "exit_group": (231, 94), "getrandom": (318, 278),
}  # fmt: skip
"""All that a program may call: its memory, its clocks, and the descriptors it was given."""
SERVING = {
    "poll": (7, None), "ppoll": (271, 73), "dup2": (33, None), "dup3": (292, 24), "fcntl": (72, 25),
    "close_range": (436, 436), "sendto": (44, 206), "recvmsg": (47, 212), "wait4": (61, 260),
    "getppid": (110, 173), "prctl": (157, 167), "set_robust_list": (273, 99), "prlimit64": (302, 261),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424),
}  # fmt: skip
"""What a zygote calls beside that, and a child before it reads its program.

Numbers of <asm/unistd_64.h> and <asm-generic/unistd.h>.
"""
CLONE, CLONE3 = (56, 220), 435
ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""AUDIT_ARCH_* of <linux/audit.h>, and the column of the tables."""
NEW_NAMESPACES_OR_SHARED_MEMORY = 0x7E020100
"""CLONE_NEW* and CLONE_VM of <linux/sched.h>: what a fork never asks for, but a thread or a container does."""

# <linux/bpf_common.h>, <linux/seccomp.h>; offsets in struct seccomp_data
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_ALLOW, _KILL_PROCESS, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000

Instruction = tuple[int, int, int, int]
"""Operation, jump when true, jump when false, operand."""


def child_filter(machine: str) -> bytes:
    """Assemble the filter of programs, 8 bytes an instruction: ``COMPUTING`` alone.

    Raises:
        OSError: the architecture is not known.
    """
    architecture, column = _architecture(machine)
    return _assemble(architecture, _decide(_numbers(COMPUTING, column)))


def zygote_filter(machine: str) -> bytes:
    """Assemble the filter of zygotes: ``COMPUTING`` and ``SERVING``, and forks but no threads or namespaces.

    Raises:
        OSError: the architecture is not known.
    """
    architecture, column = _architecture(machine)
    return _assemble(
        architecture,
        [
            (_EQUAL, 0, 1, CLONE3),
            (_RETURN, 0, 0, _ERROR | errno.ENOSYS),  # glibc then calls clone, whose flags a filter can read
            (_EQUAL, 0, 4, CLONE[column]),
            (_LOAD, 0, 0, _FIRST_ARGUMENT),
            (_ANY_BIT, 0, 1, NEW_NAMESPACES_OR_SHARED_MEMORY),
            (_RETURN, 0, 0, _ERROR | errno.EPERM),
            (_RETURN, 0, 0, _ALLOW),
            *_decide(_numbers(COMPUTING, column) | _numbers(SERVING, column)),
        ],
    )


def _architecture(machine: str) -> tuple[int, int]:
    if machine not in ARCHITECTURES:
        raise OSError(f"no system call filter for {machine}, only for {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[machine]


def _numbers(table: Mapping[str, tuple[int | None, ...]], column: int) -> set[int]:
    return {number for entry in table.values() if (number := entry[column]) is not None}


def _assemble(architecture: int, decision: Iterable[Instruction]) -> bytes:
    instructions = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER),
        *decision,
    ]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)


def _decide(allowed: set[int]) -> list[Instruction]:
    """Search for a number among those allowed by halves, since the kernel runs a new filter for every number."""
    bounds = [n for n in range(max(allowed) + 2) if (n in allowed) != (n - 1 in allowed)]
    return _search(bounds, allowed=False)


def _search(bounds: list[int], allowed: bool) -> list[Instruction]:
    """Decide on a number; whether it is allowed changes at each bound, starting with ``allowed`` below the first."""
    if not bounds:
        return [(_RETURN, 0, 0, _ALLOW if allowed else _ERROR | errno.EPERM)]
    middle = len(bounds) // 2
    below = _search(bounds[:middle], allowed)
    above = _search(bounds[middle + 1 :], allowed ^ (middle % 2 == 0))
    return [(_AT_LEAST, len(below), 0, bounds[middle]), *below, *above]
