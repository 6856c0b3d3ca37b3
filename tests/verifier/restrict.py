"""Runs a command as a container's default seccomp profile would let it: ``restrict.py docker|nolandlock|noseccomp …``.

Written without the sandbox's own tables, and with its own small assembler, so as to judge them.
"""

import ctypes
import errno
import os
import struct
import sys

# x86-64 and arm64 numbers of what Docker's default profile denies a process without CAP_SYS_ADMIN
DENIED_BY_DOCKER = {
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "bpf": (321, 280), "perf_event_open": (298, 241),
    "keyctl": (250, 219), "add_key": (248, 217), "userfaultfd": (323, 282), "kexec_load": (246, 104),
    "reboot": (169, 142), "swapon": (167, 224), "settimeofday": (170, 170), "open_by_handle_at": (304, 265),
}  # fmt: skip
CLONE, CLONE3 = (56, 220), (435, 435)
LANDLOCK = {"create": (444, 444), "add": (445, 445), "restrict": (446, 446)}
SECCOMP, PRCTL = (317, 277), (157, 167)
COLUMN = ("x86_64", "aarch64").index(os.uname().machine)
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000


def profile(name: str) -> list[tuple[int, int, int, int]]:
    """Instructions of a filter by name."""
    code = [(LOAD, 0, 0, 0)]
    if name == "docker":
        code += deny(CLONE3, errno.ENOSYS)
        code += [(EQUAL, 0, 4, CLONE[COLUMN]), (LOAD, 0, 0, 16), (ANY_BIT, 0, 1, 0x7E020000)]
        code += [(RETURN, 0, 0, FAIL | errno.EPERM), (RETURN, 0, 0, ALLOW)]
        for numbers in DENIED_BY_DOCKER.values():
            code += deny(numbers, errno.EPERM)
    elif name == "nolandlock":
        for numbers in LANDLOCK.values():
            code += deny(numbers, errno.ENOSYS)
    else:
        code += deny(SECCOMP, errno.ENOSYS)
        code += [(EQUAL, 0, 4, PRCTL[COLUMN]), (LOAD, 0, 0, 16), (EQUAL, 0, 1, 22)]
        code += [(RETURN, 0, 0, FAIL | errno.EINVAL), (RETURN, 0, 0, ALLOW)]
    return [*code, (RETURN, 0, 0, ALLOW)]


def deny(numbers: tuple[int, int], error: int) -> list[tuple[int, int, int, int]]:
    """Fail a call with an error."""
    return [(EQUAL, 0, 1, numbers[COLUMN]), (RETURN, 0, 0, FAIL | error)]


class Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def main() -> None:
    """Install the filter and become the command."""
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in profile(sys.argv[1]))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong)
    if os.geteuid() != 0:
        prctl(38, 1, None, 0, 0)
    if prctl(22, 2, ctypes.byref(Program(len(code) // 8, code)), 0, 0):
        raise OSError(ctypes.get_errno(), "the emulated profile cannot be installed")
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
