"""The filters, run by an interpreter of their instructions, and their numbers, held against the kernel's headers."""

import errno
import re
import struct
from pathlib import Path

import pytest

from populora.verifier.syscalls import (
    ARCHITECTURES,
    CLONE,
    CLONE3,
    COMPUTING,
    SERVING,
    child_filter,
    zygote_filter,
)

ALLOW, KILL, FAIL = 0x7FFF0000, 0x80000000, 0x00050000
FORK = 0x01200011  # CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD
THREAD = 0x003D0F00
NEW_USER_NAMESPACE = 0x10000011


def verdict(program, number, first_argument=0, machine="x86_64"):
    """What a filter returns for a call, by the meaning of classic BPF."""
    instructions = list(struct.iter_unpack("=HBBI", program))
    data = {0: number, 4: ARCHITECTURES.get(machine, (0,))[0], 16: first_argument}
    position = accumulator = 0
    while True:
        operation, when_true, when_false, operand = instructions[position]
        position += 1
        match operation:
            case 0x20:
                accumulator = data[operand]
            case 0x06:
                return operand
            case 0x15 | 0x35 | 0x45:
                holds = {
                    0x15: accumulator == operand,
                    0x35: accumulator >= operand,
                    0x45: bool(accumulator & operand),
                }
                position += when_true if holds[operation] else when_false


def numbers(table, column):
    return {entry[column] for entry in table.values()} - {None}


@pytest.mark.parametrize(("machine", "column"), [("x86_64", 0), ("aarch64", 1)])
def test_a_program_may_compute_and_nothing_else(machine, column):
    program = child_filter(machine)
    allowed = {n for n in range(1000) if verdict(program, n, machine=machine) == ALLOW}
    assert allowed == numbers(COMPUTING, column)
    assert {verdict(program, n, machine=machine) for n in {*range(1000)} - allowed} == {FAIL | errno.EPERM}


@pytest.mark.parametrize(("machine", "column"), [("x86_64", 0), ("aarch64", 1)])
def test_a_zygote_may_fork_but_start_no_thread_and_no_namespace(machine, column):
    program = zygote_filter(machine)
    clone = CLONE[column]
    allowed = {n for n in range(1000) if verdict(program, n, FORK, machine) == ALLOW}
    assert allowed == numbers(COMPUTING, column) | numbers(SERVING, column) | {clone}
    assert verdict(program, CLONE3, machine=machine) == FAIL | errno.ENOSYS
    for flags in (THREAD, NEW_USER_NAMESPACE, 0x4111):
        assert verdict(program, clone, flags, machine) == FAIL | errno.EPERM


def test_calls_of_another_architecture_kill():
    for program in (child_filter("x86_64"), zygote_filter("x86_64")):
        assert verdict(program, 0, machine="i386") == KILL
        assert verdict(program, 0x40000000) == FAIL | errno.EPERM  # read of the x32 interface


@pytest.mark.parametrize(
    ("header", "column"),
    [("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", 0), ("/usr/include/asm-generic/unistd.h", 1)],
)
def test_numbers_are_the_kernels(header, column):
    if not Path(header).exists():
        pytest.skip(f"the kernel's headers are not installed: {header}")
    known = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", Path(header).read_text()))
    table = COMPUTING | SERVING | {"clone": CLONE, "clone3": (CLONE3, CLONE3)}
    ours = {name: str(entry[column]) for name, entry in table.items() if entry[column] is not None}
    assert ours.items() <= known.items()


@pytest.mark.parametrize("assemble", [child_filter, zygote_filter])
def test_an_unknown_architecture_has_no_filter(assemble):
    with pytest.raises(OSError, match="no system call filter for riscv64"):
        assemble("riscv64")
