"""A child's last step before it reads a program: give up every system call but those that computing needs.

Standard library alone, like the zygote that loads it. What is not listed fails with EPERM: files, sockets,
processes, threads, signals to others, limits, namespaces, tracing. That leaves the child its memory, its clocks
and the one stream it holds, whoever it runs as and wherever; no capability or name space is needed.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Callable

ALLOWED = {
    # name: (x86-64, arm64)
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "lseek": (8, 62), "mmap": (9, 222), "mprotect": (10, 226),
    "munmap": (11, 215), "brk": (12, 214), "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139), "sched_yield": (24, 124), "mremap": (25, 216), "madvise": (28, 233),
    "nanosleep": (35, 101), "getpid": (39, 172), "exit": (60, 93), "gettimeofday": (96, 169), "getrusage": (98, 165),
    "times": (100, 153), "sigaltstack": (131, 132), "gettid": (186, 178), "futex": (202, 98),
    "restart_syscall": (219, 128), "clock_gettime": (228, 113), "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115), "exit_group": (231, 94), "getrandom": (318, 278),
}  # fmt: skip
"""Numbers of <asm/unistd_64.h> and <asm-generic/unistd.h>."""
ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""AUDIT_ARCH_* of <linux/audit.h>, and the column of ``ALLOWED``."""

# <linux/bpf_common.h>, <linux/seccomp.h>, <linux/prctl.h>
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_OFFSET_OF_NUMBER, _OFFSET_OF_ARCHITECTURE = 0, 4
_ALLOW, _KILL_PROCESS, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
_SET_SECCOMP, _MODE_FILTER, _SET_NO_NEW_PRIVILEGES = 22, 2, 38


class _Program(ctypes.Structure):
    """``struct sock_fprog``."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def filter_program(machine: str) -> bytes:
    """Assemble the seccomp filter: 8 bytes an instruction.

    Raises:
        OSError: the architecture is not known.
    """
    if machine not in ARCHITECTURES:
        raise OSError(f"no system call filter for {machine}, only for {', '.join(ARCHITECTURES)}")
    architecture, column = ARCHITECTURES[machine]
    numbers = [entry[column] for entry in ALLOWED.values()]
    instructions = [
        (_LOAD, 0, 0, _OFFSET_OF_ARCHITECTURE),
        (_JUMP_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _OFFSET_OF_NUMBER),
        *((_JUMP_IF_EQUAL, len(numbers) - index, 0, number) for index, number in enumerate(numbers)),
        (_RETURN, 0, 0, _ERROR),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)


def confinement() -> Callable[[], None]:
    """Prepare the filter; calling what is returned confines the calling process for good.

    Raises:
        OSError: the architecture is not known, or on the call, the kernel refuses.
    """
    instructions = filter_program(os.uname().machine)
    program = _Program(len(instructions) // 8, instructions)
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong)

    def confine() -> None:
        if prctl(_SET_NO_NEW_PRIVILEGES, 1, None, 0, 0) or prctl(
            _SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0
        ):
            raise OSError(ctypes.get_errno(), "the kernel refuses the system call filter")

    return confine
