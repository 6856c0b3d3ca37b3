"""Wall clock of an iteration for populations of different size, at equal prompts, attempts and tokens.

Each size trains ``configs/quickstart.yaml`` for some iterations with as many prompts in all; the first iteration, which
warms up, is left out. Responses differ in length, so seconds are counted for each generated token. Size 1 is the single
agent of ``configs/single_agent.yaml``. The shares of the stages come from the throughput callback.

    python benchmarks/iteration.py [--sizes 1 8] [--prompts 4] [--iterations 6]
"""

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import yaml
from figures import report
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

CONFIG = Path(__file__).parent.parent / "configs" / "quickstart.yaml"
STAGES = (
    "sync", "generate", "verify", "pack", "forward", "backward", "optimizer", "callbacks", "checkpoint", "rest",
)  # fmt: skip


@dataclass(frozen=True)
class Result:
    """Medians over the iterations."""

    seconds: float
    tokens_per_second: float
    shares: dict[str, float]


def settings(size: int, args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Return the config of a run: half of the members are teachers, each with its part of the prompts."""
    config: dict[str, Any] = yaml.safe_load(CONFIG.read_text())
    pairs = max(1, size // 2)
    config["model"]["population"] = {"teachers": pairs, "students": pairs, "shared": size == 1}
    config["data"]["iterations"] = args.iterations
    config["data"]["rollout"]["prompts_per_task"] = args.prompts // pairs
    config["trainer"]["default_root_dir"] = str(folder)
    callbacks = (
        "GracefulStop",
        "RatingUpdates",
        "PopulationStatistics",
        "Throughput",
        "RunProgress",
        "RunCheckpoint",
    )
    config["trainer"]["callbacks"] = [f"populora.callbacks.{name}" for name in callbacks]
    return config


def measure(size: int, args: argparse.Namespace) -> Result:
    """Train a population of some size."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "config.yaml"
        file.write_text(yaml.safe_dump(settings(size, args, folder)))
        subprocess.run(
            [sys.executable, "-m", "populora", "fit", f"--config={file}"], check=True, stdout=sys.stderr
        )
        events = EventAccumulator(str(folder))
        events.Reload()

        def middle(tag: str) -> float:
            return median(point.value for point in events.Scalars(tag)[1:])

        seconds = middle("seconds/iteration")
        shares = {stage: middle(f"seconds/{stage}") / seconds for stage in STAGES}
        return Result(seconds, middle("throughput/tokens_per_second"), shares)


def main() -> None:
    """Measure and write a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[1, 8], help="members; the first is the measure"
    )
    parser.add_argument(
        "--prompts", type=int, default=4, help="proposal prompts a task, of all teachers together"
    )
    parser.add_argument("--iterations", type=int, default=6)
    args = parser.parse_args()
    for size in args.sizes:
        if size > 1 and (size % 2 or args.prompts % (size // 2)):
            raise SystemExit(
                f"{args.prompts} prompts cannot be shared out to {size} members, half of them teachers"
            )
    results = {size: measure(size, args) for size in args.sizes}
    first = results[args.sizes[0]]
    sys.stdout.write(
        f"{'members':>8}{'seconds':>9}{'tokens/s':>9}{'ratio':>7}"
        + "".join(f"{s:>11}" for s in STAGES)
        + "\n"
    )
    for size, result in results.items():
        shares = "".join(f"{result.shares[stage]:>11.1%}" for stage in STAGES)
        ratio = first.tokens_per_second / result.tokens_per_second
        sys.stdout.write(
            f"{size:>8}{result.seconds:>9.2f}{result.tokens_per_second:>9.0f}{ratio:>7.2f}{shares}\n"
        )
    report(
        **{
            f"iteration with {size} members": first.tokens_per_second / result.tokens_per_second
            for size, result in results.items()
            if result is not first
        }
    )


if __name__ == "__main__":
    main()
