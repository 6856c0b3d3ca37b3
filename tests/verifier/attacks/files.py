"""Attacks on the file system. Control: each returns a text that begins with ``escaped`` in a plain interpreter."""


def read_a_file(x):
    """By the module below os, so that a patched ``open`` changes nothing, and by way of /proc."""
    import posix

    for path in (x["secret"], "/proc/self/root" + x["secret"], f"/proc/{posix.getppid()}/root" + x["secret"]):
        try:
            if x["canary"].encode() in posix.read(posix.open(path, 0), 100):
                return "escaped by " + path
        except OSError:
            pass
    return "held"


def read_a_file_by_import(x):
    """Loads a module that lies in a world-readable folder."""
    import importlib
    import sys

    sys.path.insert(0, x["folder"])
    sys.meta_path.append(importlib._bootstrap_external.PathFinder)
    return "escaped with " + importlib.import_module("planted").LOOT


def read_a_file_by_its_line(x):
    """Has the standard library read it, as for a traceback."""
    import tokenize

    with tokenize.open(x["secret"]) as file:
        return "escaped with " + file.readline()


def look_at_files(x):
    """Finds out what exists without opening anything."""
    import os

    for look in (os.stat, os.lstat, os.readlink, os.listdir, os.statvfs):
        try:
            return f"escaped: {look(x['folder'])}"
        except OSError:
            pass
    return "escaped" if os.access(x["folder"], os.F_OK) or os.getcwd() else "held"


def write_a_file(x):
    """In a world-writable folder, in shared memory, and where it stands."""
    import os

    written = []
    for folder in (x["loot"], "/dev/shm", "/tmp", "."):
        path = f"{folder}/{x['tag']}"
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
            os.write(descriptor, b"x")
            written.append(path)
            if folder != x["loot"]:
                os.unlink(path)
        except OSError:
            pass
    return f"escaped to {written}" if written else "held"


def write_a_file_without_a_name(x):
    import os

    os.write(os.open(x["loot"], os.O_TMPFILE | os.O_RDWR), b"x")
    return "escaped"


def make_folders_and_links(x):
    import os

    made = 0
    for name, make in enumerate((os.mkdir, os.mkfifo, lambda path: os.symlink("/", path))):
        try:
            make(f"{x['loot']}/{x['tag']}{name}")
            made += 1
        except OSError:
            pass
    return "escaped" if made else "held"


def change_a_file_s_marks(x):
    """Mode, times and owner: what Landlock has no rule for."""
    import os

    for change in (lambda p: os.chmod(p, 0o777), os.utime, lambda p: os.chown(p, -1, -1)):
        try:
            change(x["loot"])
            return "escaped"
        except OSError:
            pass
    return "held"


def hold_memory_outside_the_limits(x):
    """Memory of a file that has no name counts for no address space."""
    import os

    descriptor = os.memfd_create("loot")
    os.ftruncate(descriptor, 1 << 30)
    return "escaped"


def read_the_environment(x):
    """Its own, and that of the processes above it."""
    import os

    if x["canary"] in "".join(os.environ.values()):
        return "escaped: inherited"
    for pid in ("self", os.getppid(), 1):
        try:
            with open(f"/proc/{pid}/environ") as file:
                if x["canary"] in file.read():
                    return f"escaped by {pid}"
        except OSError:
            pass
    return "held"


def read_the_memory_of_the_process_above(x):
    import os

    with open(f"/proc/{os.getppid()}/maps") as maps, open(f"/proc/{os.getppid()}/mem", "rb", 0) as memory:
        for line in maps:
            start, rights = line.split("-")[0], line.split()[1]
            if rights.startswith("rw"):
                memory.seek(int(start, 16))
                return "escaped" if memory.read(16) else "held"
    return "held"


def read_every_inherited_descriptor(x):
    """What is open when the program starts is read from its beginning."""
    import os

    for descriptor in range(64):
        try:
            if x["canary"].encode() in os.pread(descriptor, 100, 0):
                return f"escaped by {descriptor}"
        except OSError:
            pass
    return "held"


def watch_files(x):
    import select

    return f"escaped: {select.epoll().fileno()}"


def mount_a_file_system(x):
    import ctypes

    libc = ctypes.CDLL(None)
    return "escaped" if libc.unshare(0x10020000) == 0 or libc.unshare(0x00020000) == 0 else "held"
