"""Attacks by processes, signals and limits. Control: each returns ``escaped`` … in a plain interpreter."""


def fork_many(x):
    """By the module below os, so that a patched ``os.fork`` changes nothing."""
    import posix
    import time

    for _ in range(10):
        if posix.fork() == 0:
            time.sleep(2)
            posix._exit(0)
    return "escaped"


def fork_and_answer_twice(x):
    """Parent and child both report, or the child stays on as a daemon."""
    import os
    import time

    if os.fork() == 0:
        os.setsid()
        time.sleep(2)
        os._exit(0)
    return "escaped"


def start_many_threads(x):
    import threading
    import time

    for _ in range(10):
        threading.Thread(target=time.sleep, args=(1,), daemon=True).start()
    return "escaped"


def start_a_thread_below_the_threading_module(x):
    import _thread
    import time

    _thread.start_new_thread(time.sleep, (1,))
    return "escaped"


def run_a_command(x):
    import posix
    import subprocess

    if posix.system("exit 7") == 7 << 8:
        return "escaped by system"
    return (
        "escaped: " + subprocess.run(["/bin/echo", "hi"], capture_output=True, text=True, check=True).stdout
    )


def spawn_a_command(x):
    """Without fork: by vfork inside the C library."""
    import os

    return f"escaped: {os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)}"


def become_a_command(x):
    import os

    os.execv("/bin/sh", ["sh", "-c", "echo escaped >&3; echo escaped"])


def kill_another_process(x):
    import os

    os.kill(x["victim"], 9)
    return "escaped"


def kill_the_process_above(x):
    import os

    os.kill(os.getppid(), 9)
    return "escaped"


def stop_the_process_above(x):
    import os
    import signal

    os.kill(os.getppid(), signal.SIGSTOP)
    os.kill(os.getppid(), signal.SIGCONT)
    return "escaped"


def signal_by_another_call(x):
    """To its group, by a thread's number, and by a descriptor."""
    import os
    import signal

    attempts = (
        lambda: os.killpg(os.getpgid(0), 0),
        lambda: signal.pidfd_send_signal(os.pidfd_open(x["victim"]), 0),
    )
    for attempt in attempts:
        try:
            attempt()
            return "escaped"
        except (OSError, AttributeError):
            pass
    return "held"


def trace_another_process(x):
    import ctypes

    libc = ctypes.CDLL(None)
    seized = libc.ptrace(0x4206, x["victim"], None, None) == 0  # PTRACE_SEIZE
    return "escaped" if seized else "held"


def read_another_process(x):
    """By the call that needs no /proc."""
    import ctypes

    class Vector(ctypes.Structure):
        _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))

    here = ctypes.create_string_buffer(8)
    local, remote = Vector(ctypes.addressof(here), 8), Vector(x["address"], 8)
    count = ctypes.CDLL(None).process_vm_readv(
        x["victim"], ctypes.byref(local), 1, ctypes.byref(remote), 1, 0
    )
    return "escaped" if count == 8 else "held"


def raise_the_limits(x):
    import resource

    for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE):
        try:
            resource.setrlimit(kind, (resource.RLIM_INFINITY,) * 2)
        except (OSError, ValueError):
            pass
    return f"escaped with {len(bytearray(600 << 20))}"


def raise_the_limits_of_another_process(x):
    import resource

    return f"escaped: {resource.prlimit(x['victim'], resource.RLIMIT_NOFILE, (64, 64))}"


def change_its_standing(x):
    """Priority, processors, scheduler: what it does to others."""
    import os

    attempts = (lambda: os.nice(1), lambda: os.sched_setaffinity(0, {0}), lambda: os.setpriority(0, 0, 1))
    for attempt in attempts:
        try:
            attempt()
            return "escaped"
        except OSError:
            pass
    return "held"


def become_another_user(x):
    import os

    os.setuid(os.getuid())
    os.setgroups([])
    return "escaped"


def change_its_root(x):
    import os

    os.chroot("/")
    os.chdir("/")
    return "escaped"


def set_a_timer_of_the_kernel(x):
    """One that could signal another process's thread, or outlive the program."""
    import os

    return f"escaped: {os.timerfd_create(0) if hasattr(os, 'timerfd_create') else os.eventfd(1)}"


def allow_itself_more(x):
    """Puts a filter of its own in place, and makes itself traceable."""
    import ctypes

    libc = ctypes.CDLL(None)
    return "escaped" if libc.prctl(4, 1, 0, 0, 0) == 0 else "held"
