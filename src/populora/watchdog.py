"""Says what a run is waiting for when nothing moves."""

import logging
import threading
import time

logger = logging.getLogger(__name__)

PATIENCE = 600.0
"""Seconds without any progress that are worth a word."""


class Watchdog:
    """Logs what is being waited for, again and again, while nothing moves; it ends nothing itself.

    Every wait in a run has a time limit of its own: ``data.engine.start_timeout`` and ``request_timeout``, the
    sandbox's limits for each program. This is so that nobody has to guess until then.

    Args:
        patience: Seconds of silence before each word.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._awaited = ""
        self._noted = 0.0
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, awaited: str) -> None:
        """Begin to watch; without effect when it does already."""
        self.note(awaited)
        if self._thread is None:
            self._stopped.clear()
            self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
            self._thread.start()

    def note(self, awaited: str) -> None:
        """Something has moved, and this is what comes next."""
        self._awaited, self._noted = awaited, time.monotonic()

    def stop(self) -> None:
        """End watching; may be called twice."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(self._patience)
        self._thread = None

    def _watch(self) -> None:
        told = 0
        while not self._stopped.wait(self._patience / 4):
            silences = int((time.monotonic() - self._noted) / self._patience)
            if silences > told:
                logger.warning(
                    "Nothing has moved for %.0f s. Waiting for: %s", silences * self._patience, self._awaited
                )
            told = silences
