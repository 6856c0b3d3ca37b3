"""A process of its own for an engine: calls go in, results come out, nothing outlives it.

Keeping the engine apart leaves the trainer without the engine's imports, environment variables and threads;
makes a time limit possible for every call; and lets the trainer outlive a crash.
"""

import logging
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

import psutil

from populora.errors import EngineError

logger = logging.getLogger(__name__)

_LOG_TAIL = 2000
_GRACE = 10.0
"""Seconds a process may take to end by itself."""
_MESSAGE_SECONDS = 60
"""Seconds that a message under way may stand still."""


@dataclass(frozen=True)
class Call:
    """Asks the process to call a method of its served object."""

    method: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Part:
    """Part of the present call's result, ahead of the rest."""

    value: Any


@dataclass(frozen=True)
class Failure:
    """The call raised an exception."""

    message: str


class EngineProcess:
    """Runs ``python -m module``, which must :func:`serve` an object.

    The process leads a session of its own: a Ctrl-C in the terminal reaches the trainer alone. It ends when the
    trainer does, however that ends.

    Args:
        module: Dotted name of the module to run.
        environment: Variables of the process in place of the trainer's.
    """

    def __init__(self, module: str, environment: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        for limit in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
            ours.setsockopt(socket.SOL_SOCKET, limit, struct.pack("@ll", _MESSAGE_SECONDS, 0))
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, str(theirs.fileno())],
                env=environment,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.connection = Connection(ours.detach())
        """What its answers arrive on."""

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def call(self, method: str, *arguments: object, timeout: float) -> Any:
        """Call a method of the served object and return its result.

        Raises:
            EngineError: as :func:`call_each`.
        """
        [result] = call_each([self], [Call(method, arguments)], timeout)
        return result

    def send(self, call: Call) -> None:
        """Start a call.

        Raises:
            EngineError: the process is gone.
        """
        if self.connection.closed:
            raise EngineError("its process is gone")
        try:
            self.connection.send(call)
        except OSError as error:
            raise EngineError(self._obituary()) from error

    def receive(self) -> object:
        """Wait for the next message of the present call.

        Raises:
            EngineError: the process died.
        """
        try:
            return self.connection.recv()
        except (EOFError, OSError) as error:
            raise EngineError(self._obituary()) from error

    def close(self) -> None:
        """End the process, kindly at first."""
        self.connection.close()
        try:
            self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            logger.warning("The engine's process %d does not end by itself; killing it", self.pid)
        self.kill()

    def kill(self) -> None:
        """End the process and its children at once."""
        for process in self._family():
            process.kill()
        self._process.wait()
        self.connection.close()
        self._log.close()

    def _family(self) -> list[psutil.Process]:
        """Return the members of the process's session, itself included, that are still alive."""
        found = []
        for process in psutil.process_iter():
            try:
                if os.getsid(process.pid) == self.pid:
                    found.append(process)
            except OSError:
                continue
        return found

    def _obituary(self) -> str:
        """Say how the process died, with the end of its output."""
        try:
            code = self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            return "its process stands still in the middle of a message"
        cause = f"with exit code {code}"
        if code == -signal.SIGKILL:
            cause = "killed from outside, as the system does when memory runs out"
        elif code < 0:
            cause = f"of {signal.Signals(-code).name}"
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - _LOG_TAIL))
        tail = self._log.read().decode(errors="replace").strip()
        return (
            f"its process died ({cause}); its last output:\n{tail}" if tail else f"its process died ({cause})"
        )


def call_each(processes: Sequence[EngineProcess], calls: Sequence[Call], timeout: float) -> list[Any]:
    """Make one call in each process, all at the same time, and return the results in order.

    Raises:
        EngineError: as :func:`stream_each`.
    """
    last = dict(stream_each(processes, calls, timeout))
    return [last[index] for index in range(len(calls))]


def stream_each(
    processes: Sequence[EngineProcess], calls: Sequence[Call], timeout: float
) -> Generator[tuple[int, Any], None, None]:
    """Make one call in each process, all at the same time, and yield (index of the process, message) as they come.

    A call's last message is its result, :class:`Part` those before. Close the generator if you do not exhaust it.

    Args:
        processes: Processes that are idle.
        calls: One for each.
        timeout: Seconds that all may take together.

    Raises:
        EngineError: a method raised, a process died, or ``timeout`` seconds have passed. In the last two cases the
            processes that have not answered are gone afterwards, as they are when the calls are interrupted.
    """
    deadline = time.monotonic() + timeout
    waiting: dict[object, int] = {process.connection: i for i, process in enumerate(processes)}
    failure: Failure | None = None
    try:
        for process, call in zip(processes, calls, strict=True):
            process.send(call)
        while waiting:
            ready = wait(
                tuple(each.connection for each in processes if each.connection in waiting),
                max(0.0, deadline - time.monotonic()),
            )
            if not ready:
                raise EngineError(f"no answer within {timeout:g} s")
            for index in sorted(waiting[connection] for connection in ready):
                message = processes[index].receive()
                if not isinstance(message, Part):
                    del waiting[processes[index].connection]
                if isinstance(message, Failure):
                    failure = failure or message
                else:
                    yield index, message
    finally:
        for index in waiting.values():
            processes[index].kill()
    if failure is not None:
        raise EngineError(failure.message)


def serve(target: object, descriptor: int) -> None:
    """Answer calls to ``target``'s methods until the other side goes away.

    A method that is a generator yields each :class:`Part` of its result, and returns the rest.

    Args:
        descriptor: Number of the inherited socket.
    """
    os.set_inheritable(descriptor, False)
    threading.Thread(target=_end_with_trainer, args=(descriptor,), daemon=True).start()
    connection = Connection(descriptor)
    while True:
        try:
            call = connection.recv()
        except EOFError:
            return
        for message in _answer(target, call):
            connection.send(message)


def _end_with_trainer(descriptor: int) -> None:
    """Kill this process and its children when the other side is gone and a call keeps them from ending."""
    poll = select.poll()
    poll.register(descriptor, select.POLLRDHUP)
    poll.poll()
    time.sleep(_GRACE / 2)
    os.killpg(0, signal.SIGKILL)


def _answer(target: object, call: Call) -> Iterator[object]:
    try:
        outcome = getattr(target, call.method)(*call.arguments)
        if isinstance(outcome, Generator):
            outcome = yield from outcome
        yield outcome
    except Exception as error:
        logger.exception("%s failed", call.method)
        yield Failure(f"{type(error).__name__}: {error}")
