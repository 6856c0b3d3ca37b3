"""Programs that never end. Control: a plain interpreter still runs after a while."""


def loop(x):
    while True:
        pass


def loop_and_catch_everything(x):
    """No exception raised from outside, by a timer or another thread, gets out."""
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass


def loop_and_block_signals(x):
    import signal

    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    while True:
        pass


def loop_below_the_interpreter(x):
    """No signal handler written in Python gets a turn."""
    return sum(range(10**13))


def search_backwards(x):
    import re

    return re.match(r"(a+)+$", "a" * 60 + "b")


def raise_to_a_power(x):
    return 9**9**9 % 2


def iterate_without_end(x):
    return any(iter(int, 1))


def answer_with_an_endless_iterable(x):
    """For a grader that looks at what it is given."""

    class Endless(list):
        def __iter__(self):
            while True:
                yield 1

        __len__ = __eq__ = __iter__
        __repr__ = __hash__ = lambda self: sum(self)

    return str(Endless())


def loop_when_released(x):
    """After its answer, as its objects go."""

    class Bomb:
        def __del__(self):
            while True:
                pass

    Bomb()
    return 1


def loop_at_exit(x):
    import atexit

    @atexit.register
    def loop():
        while True:
            pass

    return 1


def loop_in_a_thread(x):
    """The interpreter waits for it when the program has ended."""
    import threading

    def loop():
        while True:
            pass

    threading.Thread(target=loop).start()
    return 1


def sleep(x):
    import time

    while True:
        time.sleep(600)


def wait_for_itself(x):
    import threading

    lock = threading.Lock()
    with lock:
        lock.acquire()


def stop_itself(x):
    import os
    import signal
    import time

    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(600)


def swallow_memory_errors(x):
    keep = []
    while True:
        try:
            keep.append(bytearray(1 << 28))
        except MemoryError:
            pass
        keep[:] = keep[:1]
