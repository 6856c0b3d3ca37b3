"""What trainer and zygote tell each other, on the standard library alone, since the zygote has nothing else.

Over the control socket (SOCK_SEQPACKET, the zygote's standard input):

- zygote to trainer, once: JSON ``[[layer, why it is missing], …]``, a :class:`Layer` each
- trainer to zygote, for each program: ``LIMITS``, with a stream socket attached
- zygote to trainer, for each program: ``REPLY``

Program and results travel through the stream socket, between trainer and child only:

- trainer to child: marshalled ``(program, (arguments, …), longest literal, banned modules, banned builtins, harness)``
- child to trainer: one line per input, ``value LITERAL`` (``text …`` from a harness) or the reason why there is none

Expected answers never come here, so a program that takes over its own process can only choose its own answer.
"""

import struct
from typing import NamedTuple

LIMITS = struct.Struct("=ddQ")
"""CPU seconds, wall-clock seconds, bytes of address space beyond the zygote's own."""
REPLY = struct.Struct("=idQB")
"""Wait status, CPU seconds, most bytes resident at once, and who ended the program."""
ENDED, OUT_OF_CPU, OUT_OF_WALL = range(3)
"""The program itself, or a limit."""
MOST_BYTES = 4096
"""Longest message of a zygote."""


class Layer(NamedTuple):
    """One part of a zygote's isolation."""

    name: str
    missing: str = ""
    """Why it could not be applied; empty when it was."""


REQUIRED = ("no new privileges", "seccomp")
"""Layers that a zygote does not work without, unless told that the programs are trusted."""
