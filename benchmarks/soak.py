"""Does anything grow that should not? Memory, descriptors, time and files over the iterations of one long run.

    python benchmarks/soak.py --iterations 300 --out runs/soak

Runs ``configs/quickstart.yaml`` with a callback that takes stock after every iteration, then writes ``soak.csv``, a plot
``soak.png`` and a table of slopes: growth over 100 iterations with its standard error, measured after the first fifth of
the run. A quantity is flat when its growth over that part of the run is within two standard errors, or below 1 % of its
mean. Buffer and archive grow until they are full; TensorBoard's file grows with every iteration. ``--override`` passes
settings on, for example ``--override data.engine.name=scripted``.
"""

import argparse
import csv
import logging
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import lightning as L
import psutil
from matplotlib.figure import Figure
from scipy.stats import linregress

from populora.callbacks import Archive
from populora.callbacks.run import data_of, find_callback, log_folder
from populora.cli import main as populora
from populora.records import RolloutBatch

CONFIG = Path(__file__).parent.parent / "configs" / "quickstart.yaml"
SHARED_MEMORY = Path("/dev/shm")
MIB = 2**20
FLAT = ("seconds", "trainer_mib", "engine_mib", "sandbox_mib", "descriptors", "processes", "shared_mib")
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Stock:
    """What a run holds after an iteration."""

    iteration: int
    seconds: float
    """Since the iteration before."""
    trainer_mib: float
    """Resident memory; of other processes their unique part, since forks share most of theirs."""
    engine_mib: float
    sandbox_mib: float
    descriptors: int
    """Open files of the trainer."""
    processes: int
    """Below the trainer."""
    shared_mib: float
    """Adapters in /dev/shm."""
    buffer: int
    archive: int
    """Filled cells."""
    tensorboard_mib: float
    disk_mib: float
    """All files of the run."""


class StockTaking(L.Callback):
    """Takes stock after every iteration and writes it to ``soak.csv`` in the run's folder."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self._last = time.perf_counter()

    def on_train_batch_end(
        self,
        trainer: L.Trainer,
        pl_module: L.LightningModule,
        outputs: Any,
        batch: RolloutBatch,
        batch_idx: int,
    ) -> None:
        now = time.perf_counter()
        stock = take_stock(trainer, batch.iteration + 1, now - self._last)
        self._last = time.perf_counter()
        path = log_folder(trainer) / "soak.csv"
        fresh = not path.exists()
        with path.open("a", newline="") as file:
            writer = csv.writer(file)
            if fresh:
                writer.writerow(field.name for field in fields(Stock))
            writer.writerow(astuple(stock))


def take_stock(trainer: L.Trainer, iteration: int, seconds: float) -> Stock:
    """Look at this process, those below it, and the run's files."""
    own, below = psutil.Process(), psutil.Process().children(recursive=True)
    archive = find_callback(trainer, Archive)
    folder = log_folder(trainer)
    return Stock(
        iteration=iteration,
        seconds=seconds,
        trainer_mib=own.memory_info().rss / MIB,
        engine_mib=sum(unique_memory(below, "vllm")) / MIB,
        sandbox_mib=sum(unique_memory(below, "verifier")) / MIB,
        descriptors=own.num_fds(),
        processes=len(below),
        shared_mib=size(SHARED_MEMORY, f"populora-{os.getpid()}-*/**/*") / MIB,
        buffer=len(data_of(trainer).buffer),
        archive=0 if archive is None else archive.archive.filled,
        tensorboard_mib=size(folder, "events.out.tfevents.*") / MIB,
        disk_mib=size(folder, "**/*") / MIB,
    )


def unique_memory(processes: Sequence[psutil.Process], word: str) -> Iterator[int]:
    """Yield the memory that each process whose command has ``word`` in it shares with none."""
    for process in processes:
        try:
            if word in " ".join(process.cmdline()):
                yield process.memory_full_info().uss
        except psutil.Error:
            continue


def size(folder: Path, pattern: str) -> int:
    """Return the bytes of the files that match."""
    return sum(
        path.stat().st_size for path in folder.glob(pattern) if path.is_file() and not path.is_symlink()
    )


def read(path: Path) -> dict[str, list[float]]:
    """Read ``soak.csv``, a column a quantity."""
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return {name: [float(row[name]) for row in rows] for name in rows[0]}


def slopes(columns: dict[str, list[float]]) -> list[str]:
    """Return the table: growth over 100 iterations, its standard error, and whether it is flat."""
    iterations = columns["iteration"]
    start = len(iterations) // 5
    lines = [
        "| quantity | first | last | mean | growth per 100 iterations | flat |",
        "|---|---|---|---|---|---|",
    ]
    for name, values in columns.items():
        if name == "iteration":
            continue
        part = values[start:]
        fit = linregress(iterations[start:], part)
        span, mean = iterations[-1] - iterations[start], sum(part) / len(part)
        flat = abs(fit.slope) <= 2 * fit.stderr or abs(fit.slope * span) <= 0.01 * abs(mean)
        verdict = ("yes" if flat else "NO") if name in FLAT else "grows by design"
        lines.append(
            f"| {name} | {values[0]:.2f} | {values[-1]:.2f} | {mean:.2f} | {100 * fit.slope:+.3f} ± "
            f"{100 * fit.stderr:.3f} | {verdict} |"
        )
    return lines


def plot(columns: dict[str, list[float]]) -> Figure:
    """Draw each quantity over the iterations."""
    names = [name for name in columns if name != "iteration"]
    figure = Figure(figsize=(12, 9), layout="constrained")
    for axes, name in zip(figure.subplots(4, 3).flat, names, strict=False):
        axes.plot(columns["iteration"], columns[name], linewidth=1)
        axes.set_title(name.replace("_", " "), fontsize=10)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    figure.supxlabel("completed iterations")
    return figure


def main() -> None:
    """Run, then report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("--out", type=Path, default=Path("runs/soak"))
    parser.add_argument("--override", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--report", action="store_true", help="do not run, only read soak.csv again")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if not arguments.report:
        (arguments.out / "soak.csv").unlink(missing_ok=True)
        status = populora(
            [
                "fit",
                f"--config={CONFIG}",
                f"--data.iterations={arguments.iterations}",
                f"--trainer.default_root_dir={arguments.out}",
                "--trainer.callbacks+={class_path: soak.StockTaking}",
                *(f"--{override}" for override in arguments.override),
            ]
        )
        if status:
            raise SystemExit(status)
    columns = read(arguments.out / "soak.csv")
    plot(columns).savefig(arguments.out / "soak.png", dpi=120)
    logger.info("\n".join(slopes(columns)))


if __name__ == "__main__":
    main()
