"""Moves the clocks that a program can read, so that one whose result depends on them is found out.

Not a matter of security: a program that looks for the true clocks will find them.
"""

import ctypes
import datetime
import gc
import time
from collections.abc import Callable
from typing import Any

SHIFT_SECONDS = 400_271_777
"""Twelve years, eight months, some days, hours, minutes and seconds: no field of a date stays as it was."""


def shift(seconds: int) -> None:
    """Set the clocks of :mod:`time` and :mod:`datetime` in this process forward."""
    for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
        setattr(time, name, _later(getattr(time, name), seconds))
        setattr(time, f"{name}_ns", _later(getattr(time, f"{name}_ns"), seconds * 10**9))
    for name in ("gmtime", "localtime", "ctime"):
        setattr(time, name, _of_now(getattr(time, name)))
    now = time.time
    _replace(datetime.date, "today", lambda cls: cls.fromtimestamp(now()))
    _replace(datetime.datetime, "now", lambda cls, tz=None: cls.fromtimestamp(now(), tz))
    _replace(datetime.datetime, "utcnow", lambda cls: cls.utcfromtimestamp(now()))


def _later(read: Callable[[], Any], by: int) -> Callable[[], Any]:
    return lambda: read() + by


def _of_now(convert: Callable[[float], Any]) -> Callable[..., Any]:
    now = time.time
    return lambda seconds=None: convert(now() if seconds is None else seconds)


def _replace(kind: type, name: str, method: Callable[..., Any]) -> None:
    """Set a class method of a type that is written in C, which stays the type it is for ``isinstance``."""
    (names,) = gc.get_referents(vars(kind))
    names[name] = classmethod(method)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
