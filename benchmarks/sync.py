"""Adapter sync at the shapes of Qwen2.5-7B against the storage's own speed, and what it costs when nothing changed.

The floor is one write and one read of the same bytes in the folder that adapters pass through. The engine is scripted, so
its own copy to a device is not in the figure; exporting, both digests and the check of equality are.

    python benchmarks/sync.py [--adapters 8] [--layers 28] [--rank 32]
"""

import argparse
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from evolution import factors
from figures import report

from populora.config import EngineConfig
from populora.population.adapter_files import config_text, to_tensors, write_folder
from populora.population.lowrank import LowRank
from populora.records import Member, Role
from populora.rollouts.fingerprint import as_served, fingerprint
from populora.rollouts.scripted import ScriptedEngine
from populora.rollouts.sync import AdapterSync

DTYPE = torch.bfloat16


class Bank:
    """Float32 adapters without a base."""

    def __init__(self, adapters: Mapping[str, Mapping[str, LowRank]], rank: int) -> None:
        self._adapters, self._rank = adapters, rank

    def export(self, name: str, folder: Path, dtype: torch.dtype) -> None:
        """Write as the real bank does."""
        adapter = {path: LowRank(u.a.to(dtype), u.b.to(dtype)) for path, u in self._adapters[name].items()}
        write_folder(folder, config_text(self._rank, 2.0 * self._rank, [], ""), to_tensors(adapter))

    def fingerprint(self, name: str, dtype: torch.dtype) -> str:
        """Digest as the real bank does."""
        return fingerprint(
            (path, *as_served(u.a, u.b, 2.0, dtype)) for path, u in self._adapters[name].items()
        )


def floor(folder: Path, size: int) -> float:
    """Return the seconds to write and read that many bytes."""
    block, file = bytes(size), folder / "floor"
    start = time.perf_counter()
    file.write_bytes(block)
    file.read_bytes()
    seconds = time.perf_counter() - start
    file.unlink()
    return seconds


def main() -> None:
    """Measure and write a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--adapters", type=int, default=8)
    parser.add_argument("--layers", type=int, default=28)
    parser.add_argument("--rank", type=int, default=32)
    args = parser.parse_args()
    members = [Member(f"student-{i}", Role.STUDENT) for i in range(args.adapters)]
    adapters = {
        member.name: {path: LowRank(a, b) for path, a, b in factors(args.layers, args.rank, seed)}
        for seed, member in enumerate(members)
    }
    engine = ScriptedEngine(EngineConfig(name="scripted"))
    engine._dtype = DTYPE
    sync = AdapterSync(engine, DTYPE)
    bank: Any = Bank(adapters, args.rank)
    first = sync(bank, members)
    again = sync(bank, members)
    least = min(floor(sync._folder.path, first.bytes) for _ in range(3))
    sys.stdout.write(
        f"{first.bytes / 2**20:.0f} MiB in {first.seconds:.2f} s, {first.seconds / least:.1f} times the floor of "
        f"{least:.2f} s; unchanged: {len(again.loaded)} loaded in {1000 * again.seconds:.1f} ms\n"
    )
    sync.close()
    report(**{"sync of its floor": first.seconds / least})


if __name__ == "__main__":
    main()
