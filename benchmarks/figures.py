"""How benchmarks hand on what they measured, so that ``compare.py`` can hold it against stored figures."""

import json
import sys

_MARK = "ratios "


def report(**ratios: float) -> None:
    """Write ratios, ours over the other's: less is better."""
    sys.stdout.write(_MARK + json.dumps({name: round(value, 4) for name, value in ratios.items()}) + "\n")


def read(output: str) -> dict[str, float]:
    """Return the ratios in a benchmark's output."""
    ratios: dict[str, float] = {}
    for line in output.splitlines():
        if line.startswith(_MARK):
            ratios |= json.loads(line.removeprefix(_MARK))
    return ratios
