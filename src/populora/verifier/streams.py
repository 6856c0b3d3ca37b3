"""Standard streams and threads for a script whose process has neither; standard library alone, like the zygote."""

import builtins
import contextlib
import io
import os
import sys
import threading
from types import SimpleNamespace
from typing import IO, Any

_INPUT, _OUTPUT = 0, 1


class Overflow(Exception):
    """More was written than may be."""


class _Input(io.BytesIO):
    def fileno(self) -> int:
        return _INPUT


class _Output(io.BytesIO):
    """Keeps so many bytes, drops the rest, and stays readable when the program closes it."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__()
        self.room = max_bytes

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self.room -= size
        return super().write(data) if self.room >= 0 else size

    def close(self) -> None:
        pass

    def fileno(self) -> int:
        return _OUTPUT


class Streams:
    """Standard streams of one run, as a program finds them in :mod:`sys`, by ``open`` or by descriptor.

    Args:
        text: All of standard input.
        max_bytes: Most that standard output may hold; standard error is dropped.
    """

    def __init__(self, text: str, max_bytes: int) -> None:
        self._size = len(data := text.encode("utf-8", "surrogatepass"))
        self._bytes = {_INPUT: _Input(data), _OUTPUT: _Output(max_bytes)}
        self._texts = {
            _INPUT: io.TextIOWrapper(self._bytes[_INPUT], "utf-8"),
            _OUTPUT: io.TextIOWrapper(self._bytes[_OUTPUT], "utf-8", "replace"),
        }

    def install(self) -> None:
        """Put them in place of the process's own."""
        sys.stdin, sys.stdout, sys.stderr = self._texts[_INPUT], self._texts[_OUTPUT], io.StringIO()
        vars(builtins).update(open=self._open, exit=sys.exit, quit=sys.exit)
        vars(io).update(open=self._open)
        vars(os).update(read=self._read, write=self._write, fstat=self._fstat, _exit=sys.exit)

    def output(self) -> str:
        """Return what was written to standard output.

        Raises:
            Overflow: it was too much.
        """
        for stream in (sys.stdout, self._texts[_OUTPUT]):
            with contextlib.suppress(Exception):
                stream.flush()
        output = self._bytes[_OUTPUT]
        if isinstance(output, _Output) and output.room < 0:
            raise Overflow
        return output.getvalue().decode("utf-8", "replace")

    def _open(self, file: Any, mode: str = "r", *_: Any, **__: Any) -> IO[Any]:
        number = {"/dev/stdin": _INPUT, "/dev/stdout": _OUTPUT}.get(file, file)
        if number not in self._bytes:
            raise PermissionError(f"there is no file system: {file!r}")
        return self._bytes[number] if "b" in mode else self._texts[number]

    def _read(self, number: int, size: int) -> bytes:
        return self._bytes[number].read(size)

    def _write(self, number: int, data: bytes) -> int:
        self._texts[_OUTPUT].flush()
        return self._bytes[number].write(data) if number == _OUTPUT else len(data)

    def _fstat(self, number: int) -> SimpleNamespace:
        return SimpleNamespace(st_size=self._size if number == _INPUT else 0)


def run_threads_inline() -> None:
    """Make threads run to their end when they are started: a script starts one for the sake of its stack."""

    def start(self: threading.Thread) -> None:
        with contextlib.suppress(Exception, SystemExit):
            self.run()

    def join(self: threading.Thread, timeout: float | None = None) -> None:
        pass

    for method in (start, join):
        setattr(threading.Thread, method.__name__, method)
