"""More memory or text than is good. Control: a plain interpreter allows it, and the text begins with ``escaped``."""


def allocate_and_touch(x):
    return f"escaped with {len(bytearray(b'1') * (400 << 20))}"


def allocate_bit_by_bit(x):
    keep = []
    for _ in range(200):
        keep.append(b"1" * (2 << 20))
    return f"escaped with {len(keep)}"


def map_memory(x):
    import mmap

    memory = mmap.mmap(-1, 400 << 20)
    memory[::4096] = b"1" * (400 << 8)
    return "escaped"


def grow_a_number(x):
    return f"escaped with {(1 << (400 << 23)).bit_length()}"


def compile_a_giant(x):
    """Memory that the compiler takes."""
    compile("x = [" + "(1, 2), " * 60_000 + "]", "bomb", "exec")
    return "escaped"


def format_a_giant(x):
    """Memory for which no byte was asked by name."""
    return f"escaped with {len(format(1, '>400000000'))}"


def answer_with_a_giant(x):
    return "escaped" + "A" * 50_000_000


def answer_with_shared_parts(x):
    """Small in memory, without end in writing."""
    value = "escaped"
    for _ in range(18):
        value = [value, value]
    return str(value).lstrip("['")


def fail_with_a_giant(x):
    """The message of an exception is part of the report."""
    raise ValueError("escaped" + "A" * 5_000_000)


def flood_the_outputs(x):
    import os
    import sys

    for _ in range(8):
        for write in (lambda: os.write(1, b"A" * (1 << 20)), lambda: sys.stdout.write("B" * (1 << 20))):
            try:
                write()
            except (OSError, ValueError):
                pass
    return "flooded"


def flood_every_descriptor(x):
    import os

    for descriptor in (1, *range(3, 64)):
        try:
            for _ in range(8):
                os.write(descriptor, b"A" * (1 << 20))
        except OSError:
            pass
    return "flooded"
