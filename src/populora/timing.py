"""Wall clock of consecutive stages."""

from time import perf_counter

import torch


class Lap:
    """Gives the seconds since it was made or last called, when the device has done its work.

    Args:
        device: Where the stages compute.
    """

    def __init__(self, device: torch.device) -> None:
        self._queues = device.type != "cpu"
        self._last = perf_counter()

    def __call__(self) -> float:
        """Return the seconds of the lap that ends here."""
        if self._queues:
            torch.accelerator.synchronize()
        last, self._last = self._last, perf_counter()
        return self._last - last
