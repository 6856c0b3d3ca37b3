"""A pool of zygotes: clean interpreters, executed rather than forked, that fork one child per program."""

import asyncio
import contextlib
import importlib.util
import json
import logging
import marshal
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterable
from dataclasses import astuple
from pathlib import Path

from populora.errors import VerifierError
from populora.verifier import protocol
from populora.verifier.probe import HELD, probe
from populora.verifier.protocol import Layer
from populora.verifier.sandbox import Failure, Job, Run, read_outcomes

logger = logging.getLogger(__name__)

START_SECONDS = 60.0
"""Most that a zygote may take to start, on a machine however busy."""
GRACE_SECONDS = 60.0
"""Most that a zygote may take to answer once its program's wall time is over."""
STOP_SECONDS = 2.0
"""Most that a zygote may take to end by itself."""
MOST_BYTES = 64 << 20
"""Most that is read of what a program reports."""
_BOOT = Path(__file__).resolve().with_name("boot.py")
_COMMAND = (sys.executable, "-s", "-S", "-P", "-X", "utf8", str(_BOOT))


class ZygoteLost(VerifierError):
    """A zygote died or no longer answers."""


class Zygote:
    """One zygote process: started when first needed, and again after it was stopped.

    Args:
        hash_seed: ``PYTHONHASHSEED`` of the programs, 0 … 4294967295.
        clock_shift: Seconds by which the programs' clocks run ahead.
        unsafe: Do without layers that are required otherwise, where the platform lacks them.
        modules: What programs may import beside the zygote's own choice of the standard library.
    """

    def __init__(self, hash_seed: int, clock_shift: int, unsafe: bool, modules: tuple[str, ...] = ()) -> None:
        self.layers: tuple[Layer, ...] = ()
        """Isolation, once started."""
        self._unsafe = unsafe
        self._arguments = (
            str(os.getpid()),
            "unsafe" if unsafe else "confined",
            str(clock_shift),
            json.dumps([_folders(modules), modules]),
        )
        self._environment = {
            "PYTHONHASHSEED": str(hash_seed),
            "LANG": "C.UTF-8",
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    @property
    def pid(self) -> int | None:
        """Process id, None when not started."""
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Start the process and see that it holds a program.

        Raises:
            VerifierError: it does not start, or a probe program could do what it must not.
        """
        if sys.platform != "linux":
            raise VerifierError(
                f"the sandbox needs Linux, whose seccomp confines programs; this is {sys.platform}. Run in a Linux "
                "container or virtual machine: Docker's default settings will do"
            )
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.setblocking(False)
        with theirs:
            self._process = self._spawn(theirs.fileno())
        try:
            async with asyncio.timeout(START_SECONDS):
                report = await self._answer()
            self.layers = tuple(Layer(*layer) for layer in json.loads(report))
            self._check_layers()
            run, _ = await self._exchange(probe(self._confined))
        except (ZygoteLost, TimeoutError) as error:
            raise VerifierError(
                f"the sandbox process {' '.join(_COMMAND)} does not start; see its message on standard error "
                "(it needs Linux 5.4 or later and /proc)"
            ) from error
        if run.outcomes != (HELD,):
            raise VerifierError(
                f"the sandbox does not hold: a program that tried to get out reports {run.outcomes[0]}, "
                f"expected {HELD}"
            )

    @property
    def _confined(self) -> bool:
        return not any(layer.missing for layer in self.layers if layer.name in protocol.REQUIRED)

    def _check_layers(self) -> None:
        if not self._confined and not self._unsafe:
            reasons = [
                f"{each.name} ({each.missing})"
                for each in self.layers
                if each.name in protocol.REQUIRED and each.missing
            ]
            raise VerifierError(
                f"the sandbox does without {' and '.join(reasons)} here, so nothing would stop a program; it needs "
                "Linux with seccomp on x86-64 or arm64. data.verifier.unsafe: true runs programs all the same, for "
                "models that are trusted"
            )

    def _spawn(self, control: int) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            (*_COMMAND, *self._arguments),
            env=self._environment,
            cwd="/",
            stdin=control,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    async def run(self, job: Job) -> tuple[Run, bool]:
        """Run one program; also return whether it ran into the wall-clock limit.

        Raises:
            ZygoteLost: the zygote died or hangs; it is stopped, and started again for the next job.
            VerifierError: the zygote cannot be started.
        """
        completed = False
        try:
            if self._process is None:
                await self.start()
            answer = await self._exchange(job)
            completed = True
            return answer
        finally:
            if not completed:
                self.stop()

    async def _exchange(self, job: Job) -> tuple[Run, bool]:
        limits, loop = job.limits, asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        with ours:
            ours.setblocking(False)
            with theirs:
                order = protocol.LIMITS.pack(limits.cpu_seconds, limits.wall_seconds, limits.memory_mib << 20)
                self._send(order, theirs)
            most = min(len(job.inputs) * (4 * limits.literal_chars + 100), MOST_BYTES)
            try:
                async with asyncio.timeout(limits.wall_seconds + GRACE_SECONDS):
                    with contextlib.suppress(ConnectionError):
                        await loop.sock_sendall(ours, _request(job))
                        ours.shutdown(socket.SHUT_WR)
                    report = await _read(ours, len(job.inputs), most)
                    with contextlib.suppress(OSError):
                        ours.shutdown(socket.SHUT_RD)
                    reply = await self._answer()
            except TimeoutError as error:
                raise ZygoteLost("the sandbox process does not end its program") from error
        status, cpu_seconds, peak, reason = protocol.REPLY.unpack(reply)
        outcomes = read_outcomes(job, report, _ending(status, reason))
        return Run(outcomes, cpu_seconds, peak / 2**20), reason == protocol.OUT_OF_WALL

    def _send(self, order: bytes, stream: socket.socket) -> None:
        if self._control is None:
            raise ZygoteLost("the sandbox process is not running")
        try:
            socket.send_fds(self._control, [order], [stream.fileno()])
        except OSError as error:
            raise ZygoteLost("the sandbox process is gone") from error

    async def _answer(self) -> bytes:
        if self._control is None:
            raise ZygoteLost("the sandbox process is not running")
        message = b""
        with contextlib.suppress(ConnectionError):
            message = await asyncio.get_running_loop().sock_recv(self._control, protocol.MOST_BYTES)
        if not message:
            raise ZygoteLost("the sandbox process is gone")
        return message

    def stop(self) -> None:
        """End the process and the program it runs; without effect when it is not running."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = self._control = None


def _folders(modules: Iterable[str]) -> list[str]:
    """Return the folders that packages are imported from."""
    specs = [importlib.util.find_spec(name.partition(".")[0]) for name in modules]
    origins = {spec.origin for spec in specs if spec and spec.origin and spec.submodule_search_locations}
    return sorted(str(Path(origin).parents[1]) for origin in origins)


def _request(job: Job) -> bytes:
    harness = astuple(job.harness) if job.harness else None
    return marshal.dumps(
        (job.program, job.inputs, job.limits.literal_chars, job.banned_modules, job.banned_names, harness)
    )


async def _read(stream: socket.socket, lines: int, most: int) -> bytes:
    """Read until so many lines or bytes have come, or the other side closes."""
    loop = asyncio.get_running_loop()
    report = bytearray()
    with contextlib.suppress(ConnectionError):
        while lines > 0 and len(report) < most and (chunk := await loop.sock_recv(stream, 1 << 16)):
            report += chunk
            lines -= chunk.count(b"\n")
    return bytes(report)


def _ending(status: int, reason: int) -> Failure | None:
    if reason == protocol.OUT_OF_CPU:
        return Failure("timeout")
    if reason == protocol.OUT_OF_WALL:
        return Failure("stalled")
    code = os.waitstatus_to_exitcode(status)
    if code == 0:
        return None
    if code > 0:
        return Failure("crash: exit", f"exit code {code}")
    if -code in (signal.SIGXCPU, signal.SIGPROF):
        return Failure("timeout")
    names = {number.value: number.name for number in signal.Signals}
    return Failure(f"crash: {names.get(-code, 'signal')}", f"signal {-code}")


class ZygotePool:
    """A :class:`~populora.verifier.sandbox.Sandbox` of zygotes that are started at need and restarted when they die.

    Zygotes end with the thread that started them, at the latest.

    Args:
        workers: Programs that run at once, each under its own zygote.
        hash_seed: ``PYTHONHASHSEED`` of the programs, 0 … 4294967295.
        clock_shift: Seconds by which the programs' clocks run ahead.
        unsafe: Do without seccomp where the platform lacks it, rather than refuse to run programs.
        modules: What programs may import beside the zygotes' own choice of the standard library.
    """

    def __init__(
        self,
        workers: int,
        hash_seed: int = 0,
        clock_shift: int = 0,
        unsafe: bool = False,
        modules: tuple[str, ...] = (),
    ) -> None:
        self.restarts = 0
        """Zygotes lost so far."""
        self._zygotes = tuple(Zygote(hash_seed, clock_shift, unsafe, modules) for _ in range(workers))
        self._idle: asyncio.LifoQueue[Zygote] = asyncio.LifoQueue()
        for each in self._zygotes:
            self._idle.put_nowait(each)

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the zygotes that run."""
        return tuple(each.pid for each in self._zygotes if each.pid is not None)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The isolation of the zygotes, empty before one has started."""
        return next((each.layers for each in self._zygotes if each.layers), ())

    async def start(self) -> None:
        """Start every zygote now rather than with its first program.

        Raises:
            VerifierError: a zygote cannot be started or does not hold a program.
        """
        await asyncio.gather(*(each.start() for each in self._zygotes if each.pid is None))

    async def run(self, jobs: Iterable[Job]) -> list[Run]:
        """Run all jobs; the results are in the jobs' order."""
        runs = dict([item async for item in self.stream(jobs)])
        return [runs[index] for index in range(len(runs))]

    async def stream(self, jobs: Iterable[Job]) -> AsyncGenerator[tuple[int, Run], None]:
        """Yield (index of the job, result) as results come.

        Jobs are taken from ``jobs`` only as zygotes get free and results are consumed. Closing the generator ends
        what still runs.

        Raises:
            VerifierError: a zygote cannot be started.
        """
        waiting = enumerate(jobs)
        running: set[asyncio.Task[tuple[int, Run]]] = set()
        try:
            while True:
                while len(running) < len(self._zygotes) and (item := next(waiting, None)):
                    running.add(asyncio.create_task(self._run(*item)))
                if not running:
                    return
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    yield task.result()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _run(self, index: int, job: Job) -> tuple[int, Run]:
        each = await self._idle.get()
        try:
            run = Run((Failure("crash: sandbox"),) * len(job.inputs), 0.0, 0.0)
            for _ in range(2):
                try:
                    run, stalled = await each.run(job)
                except ZygoteLost as error:
                    self.restarts += 1
                    logger.warning("%s: it is started again, its program gets one more try", error)
                    continue
                if not stalled:
                    break
                logger.warning("a program stood still for %g s of wall-clock time", job.limits.wall_seconds)
            return index, run
        finally:
            self._idle.put_nowait(each)

    def close(self) -> None:
        """End every process; they start again with the next program."""
        for each in self._zygotes:
            each.stop()
