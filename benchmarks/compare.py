"""Measure again and flag what has become a tenth slower than the stored figures.

Figures are ratios of two things measured in one run, so they hold on machines that differ in speed, not in kind.

    python benchmarks/compare.py [--only train_step] [--store]
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from figures import read

HERE = Path(__file__).parent
STORED = HERE / "results.json"
TOLERANCE = 1.1
RUNS = {
    "logprobs": (),
    "train_step": (),
    "train_step --distinct": (),
    "evolution": ("--peer", os.environ.get("POPULORA_PEER", "")),
    "sync": (),
    "iteration": (),
}
"""Benchmarks and their arguments; POPULORA_PEER is the folder that ``evolution.py`` asks for."""


def measure(run: str) -> dict[str, float]:
    """Run one benchmark and return its ratios."""
    script, *options = run.split()
    arguments = [value for value in RUNS[run] if all(RUNS[run])]
    command = [sys.executable, str(HERE / f"{script}.py"), *options, *arguments]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    sys.stdout.write(f"## {run}\n{output}\n")
    return read(output)


def main() -> None:
    """Measure, compare, and store if asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=RUNS, default=list(RUNS))
    parser.add_argument("--store", action="store_true", help="take the new figures for the stored ones")
    args = parser.parse_args()
    stored: dict[str, float] = json.loads(STORED.read_text()) if STORED.exists() else {}
    found = {name: ratio for run in args.only for name, ratio in measure(run).items()}
    worse = {name for name, ratio in found.items() if ratio > TOLERANCE * stored.get(name, ratio)}
    for name, ratio in found.items():
        before = f"{stored[name]:.3f}" if name in stored else "–"
        sys.stdout.write(f"{name:44} {before:>8} → {ratio:.3f} {'SLOWER' if name in worse else ''}\n")
    if args.store:
        STORED.write_text(json.dumps(stored | found, indent=2) + "\n")
    elif worse:
        raise SystemExit(f"{len(worse)} of {len(found)} figures are worse by more than a tenth")


if __name__ == "__main__":
    main()
