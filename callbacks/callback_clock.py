"""What callbacks and checkpoints cost."""

import time

from lightning.pytorch.profilers import Profiler
from typing_extensions import override


class CallbackClock(Profiler):
    """Sums the seconds that Lightning spends in callbacks, apart for those that write checkpoints.

    A hook that runs within another, as when a checkpoint asks callbacks for their state, belongs to the outer one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.checkpointing: frozenset[str] = frozenset()
        """``state_key`` of the callbacks that write checkpoints."""
        self._open: list[str] = []
        self._began = 0.0
        self._seconds = {False: 0.0, True: 0.0}

    @override
    def start(self, action_name: str) -> None:
        if action_name.startswith("[Callback]"):
            if not self._open:
                self._began = time.perf_counter()
            self._open.append(action_name)

    @override
    def stop(self, action_name: str) -> None:
        if self._open and action_name == self._open[-1]:
            self._open.pop()
            if not self._open:
                self._seconds[self._checkpoints(action_name)] += time.perf_counter() - self._began

    def take(self) -> tuple[float, float]:
        """Return the seconds of callbacks and of checkpoints since the last call; a hook under way counts up to now."""
        now = time.perf_counter()
        if self._open:
            self._seconds[self._checkpoints(self._open[0])] += now - self._began
            self._began = now
        callbacks, checkpoints = self._seconds[False], self._seconds[True]
        self._seconds = {False: 0.0, True: 0.0}
        return callbacks, checkpoints

    def _checkpoints(self, action_name: str) -> bool:
        return action_name.removeprefix("[Callback]").rpartition(".")[0] in self.checkpointing
