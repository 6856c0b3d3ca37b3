"""The layers of isolation a zygote puts around itself, once, before it meets a program; its children inherit them.

Their order matters, since most take away what an earlier one needs: namespaces and another user need privileges,
Landlock needs calls that the filter forbids. None but seccomp is needed for the sandbox to hold: without a file system,
sockets, processes and signals there is nothing left to protect. The others stand behind it, each where the
platform has it: Landlock behind the filter's list, an own user and no capabilities behind Landlock.

This is a ctypes layer of our own rather than ``seccompy`` and ``landlockpy``, the two packages that could do it: they
are young, come from one vendor and have ten times these lines for what a zygote never asks; they would have to
be found by an interpreter that sees the standard library alone on purpose; and what is applied here is fixed, a
ruleset without rules and two lists of calls, so that the tests can hold all of it against the kernel's headers.
"""

import ctypes
import errno
import os
import resource
import socket
from collections.abc import Callable
from functools import partial

from populora.verifier.protocol import Layer
from populora.verifier.syscalls import ARCHITECTURES, child_filter, zygote_filter

FIRST_UID, UIDS = 61_184, 4_096
"""Users that no account has."""
MAX_DESCRIPTORS = 16
STACK_BYTES = 64 << 20
"""Room for recursion through C code, as deep as a recursion limit of tens of thousands lets it go."""

# <linux/sched.h>, <linux/prctl.h>, <linux/seccomp.h>, <linux/capability.h>, <linux/landlock.h>
_NEW_UTS_IPC_NET, _NEW_USER = 0x4C000000, 0x10000000
_SET_DUMPABLE, _SET_SECCOMP, _SET_NO_NEW_PRIVILEGES, _MODE_FILTER = 4, 22, 38, 2
_CAPABILITY_VERSION_3 = 0x20080522
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CREATE_RULESET, _RESTRICT_SELF, _RULESET_VERSION = 444, 446, 1
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
"""By the version that brought them: how many rights over files there are."""
_TCP_SINCE, _SCOPES_SINCE = 4, 6

_libc = ctypes.CDLL(None, use_errno=True)
_libc.prctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong)
_libc.syscall.argtypes = (ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_libc.syscall.restype = ctypes.c_long


class _Filter(ctypes.Structure):
    """``struct sock_fprog``."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def confine() -> list[Layer]:
    """Apply every layer that the platform has to the calling process, which must have one thread, for good.

    Returns:
        All layers, each with the reason where it could not be applied.
    """
    layers: dict[str, Callable[[], None]] = {
        "namespaces": _leave_namespaces,
        "limits": _limit,
        "own user": _become_no_one,
        "no capabilities": _drop_capabilities,
        "no new privileges": lambda: _prctl(_SET_NO_NEW_PRIVILEGES, 1),
        "Landlock": _restrict,
        "seccomp": _filter_calls,
    }
    return [Layer(name, _attempt(apply)) for name, apply in layers.items()]


def _attempt(apply: Callable[[], None]) -> str:
    try:
        apply()
    except OSError as error:
        return str(error.strerror or error)
    return ""


def child_confinement() -> Callable[[], None]:
    """Prepare what a child does last before it reads its program: reduce its calls to those of computing.

    Raises:
        OSError: on the call, the kernel refuses.
    """
    machine = os.uname().machine
    return _installer(child_filter(machine) if machine in ARCHITECTURES else b"")


def install(instructions: bytes) -> None:
    """Put a system call filter on this process, for good.

    Raises:
        OSError: the kernel refuses.
    """
    _installer(instructions)()


def _installer(instructions: bytes) -> Callable[[], None]:
    program = ctypes.pointer(_Filter(len(instructions) // 8, instructions))
    return partial(_prctl, _SET_SECCOMP, _MODE_FILTER, program)


def _filter_calls() -> None:
    """Reduce this process's calls to those of serving, and see that others fail."""
    install(zygote_filter(os.uname().machine))
    attempts: dict[str, Callable[[], object]] = {
        "open a file": lambda: os.open("/", os.O_RDONLY),
        "open a socket": socket.socket,
        "signal a process": lambda: os.kill(os.getppid(), 0),
        "run a command": lambda: os.execv("/", ["/"]),
    }
    for name, attempt in attempts.items():
        if _errno_of(attempt) != errno.EPERM:
            raise OSError(f"the filter is in place, and yet this process can {name}")


def _errno_of(attempt: Callable[[], object]) -> int | None:
    try:
        attempt()
    except OSError as error:
        return error.errno
    return None


def _leave_namespaces() -> None:
    """Move to a network without interfaces; a plain user may where user namespaces are allowed."""
    if _libc.unshare(_NEW_UTS_IPC_NET) and (os.geteuid() == 0 or _libc.unshare(_NEW_USER | _NEW_UTS_IPC_NET)):
        _fail()


def _limit() -> None:
    limits = {"CORE": 0, "FSIZE": 0, "MEMLOCK": 0, "MSGQUEUE": 0, "NOFILE": MAX_DESCRIPTORS}
    for kind, most in limits.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{kind}"), (most, most))
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    stack = STACK_BYTES if hard == resource.RLIM_INFINITY else min(STACK_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_STACK, (stack, stack))


def _become_no_one() -> None:
    if os.geteuid() != 0:
        raise OSError("programs run as the user of the trainer, who is not root")
    uid = FIRST_UID + os.getpid() % UIDS
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _drop_capabilities() -> None:
    """Give up what root may, and the right of others to trace this process."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    number = _CAPSET.get(os.uname().machine)
    if number is None:
        raise OSError("not known on this architecture")
    _syscall(number, header, nothing)
    _prctl(_SET_DUMPABLE, 0)


def _restrict() -> None:
    """Deny every file, TCP, and what is outside this domain by signals and abstract sockets: no rules, no rights."""
    version = _syscall(_CREATE_RULESET, None, 0, _RULESET_VERSION)
    rights = max(count for since, count in _FILE_RIGHTS.items() if since <= version)
    handled = [(1 << rights) - 1, 0b11 * (version >= _TCP_SINCE), 0b11 * (version >= _SCOPES_SINCE)]
    words = 3 if version >= _SCOPES_SINCE else 2 if version >= _TCP_SINCE else 1
    ruleset = _syscall(_CREATE_RULESET, (ctypes.c_uint64 * 3)(*handled), 8 * words, 0)
    try:
        _syscall(_RESTRICT_SELF, ruleset, 0, 0)
    finally:
        os.close(ruleset)


def _prctl(option: int, value: int, pointer: object = None) -> None:
    if _libc.prctl(option, value, pointer, 0, 0):
        _fail()


def _syscall(number: int, *arguments: object) -> int:
    result: int = _libc.syscall(number, *arguments, *(None,) * (3 - len(arguments)))
    if result < 0:
        _fail()
    return result


def _fail() -> None:
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
