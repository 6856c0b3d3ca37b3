"""Does co-evolution teach? Held-out scores of students against the base, and how hard teachers' problems become.

    python benchmarks/learning.py --seeds 0 1 2 --iterations 40

Runs ``configs/quickstart.yaml`` under ``benchmarks/learning.yaml`` once for each seed and prints a table; every number
comes from the run's own callbacks. A score is over 320 answers to held-out deduction problems, the same for all (standard
error about 3 points). Difficulty is the share of a teacher's newest problems that the base, which every student was at
first, fails.
"""

import argparse
import logging
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from populora.cli import main as populora

CONFIGS = (
    Path(__file__).parent.parent / "configs" / "quickstart.yaml",
    Path(__file__).with_suffix(".yaml"),
)
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Result:
    """What one seed came to; shares in [0, 1]."""

    seed: int
    base: float
    students: tuple[float, ...]
    first_difficulty: float
    last_difficulty: float

    def row(self) -> str:
        """Return a line of the table."""
        mean, weakest = fmean(self.students), min(self.students)
        return (
            f"| {self.seed} | {self.base:.1%} | {mean:.1%} | {mean - self.base:+.1%} | {weakest:.1%} | "
            f"{weakest - self.base:+.1%} | {self.first_difficulty:.1%} | {self.last_difficulty:.1%} |"
        )


def run(seed: int, iterations: int, root: Path) -> Result:
    """Train with one seed and read what the run logged."""
    folder = root / f"seed-{seed}"
    status = populora(
        [
            "fit",
            *(f"--config={path}" for path in CONFIGS),
            f"--seed_everything={seed}",
            f"--data.iterations={iterations}",
            f"--trainer.default_root_dir={folder}",
        ]
    )
    if status:
        raise SystemExit(status)
    events = EventAccumulator(str(folder))
    events.Reload()
    tags = events.Tags()["scalars"]
    last = {tag: events.Scalars(tag)[-1].value for tag in tags if tag.startswith("heldout/deduction/")}
    difficulty = [point.value for point in events.Scalars("difficulty/all")]
    return Result(
        seed=seed,
        base=last["heldout/deduction/base"],
        students=tuple(value for tag, value in last.items() if tag.rpartition("/")[2].startswith("student")),
        first_difficulty=difficulty[0],
        last_difficulty=difficulty[-1],
    )


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--iterations", type=int, default=40)
    parser.add_argument("--root", type=Path, default=Path("runs/learning"))
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    results = [run(seed, options.iterations, options.root) for seed in options.seeds]
    logger.info("\n| seed | base | students | − base | weakest | − base | difficulty, first | last |")
    logger.info("|---|---|---|---|---|---|---|---|")
    for result in results:
        logger.info(result.row())


if __name__ == "__main__":
    main()
