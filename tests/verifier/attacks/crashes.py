"""Programs that bring their process down. Control: a plain interpreter ends by a signal, or with a code of its own."""


def run_wild_bytecode(x):
    from opcode import opmap

    wild = bytes([opmap["EXTENDED_ARG"], 127, opmap["EXTENDED_ARG"], 255, opmap["LOAD_CONST"], 255])
    exec((lambda: 0).__code__.replace(co_code=wild * 9))


def read_address_zero(x):
    import ctypes

    return ctypes.string_at(0)


def overflow_the_stack(x):
    """Past a recursion limit of its own making, in C."""
    import sys

    sys.setrecursionlimit(10**9)

    class Loop:
        def __getattr__(self, name):
            return getattr(self, name)

    return Loop().y


def abort(x):
    import os

    os.abort()


def kill_itself(x):
    import os

    os.kill(os.getpid(), 9)


def leave_in_a_hurry(x):
    import os

    os._exit(3)


def leave_while_answering(x):
    """The process ends in the middle of its report."""
    import os

    class Exit(dict):
        def __iter__(self):
            os._exit(3)

        __repr__ = __str__ = __len__ = __iter__

    return str(Exit())


def close_every_descriptor(x):
    import os

    for descriptor in range(64):
        try:
            os.close(descriptor)
        except OSError:
            pass
    os._exit(3)
