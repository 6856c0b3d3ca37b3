"""Wall-clock time of grading HumanEval+ and MBPP+ solutions: this package against evalplus 0.3.1 from PyPI.

The two take turns on the same solutions with the same number of processes. What is timed is grading alone: for
evalplus, once its data and expected results are loaded; for this package, with expected results in the cache, and the
start of its sandbox included. Both allow a call the same time, which is more than evalplus does by default: with
its one second, verdicts depend on the machine. Verdicts are compared, base and plus. evalplus runs in an interpreter of its own, which
needs ``pip install --no-deps evalplus==0.3.1`` and the packages that it imports.

    POPULORA_BENCHMARKS=FOLDER python benchmarks/grading.py --evalplus PYTHON [--rounds 3] [--items 378]
        [--solutions mbpp_plus_solutions.jsonl] [--dataset mbpp]

Without ``--solutions``, canonical solutions are graded.
"""

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from populora.config import cores
from populora.evaluation.code.plus import CALL_SECONDS, PlusItem, PlusSuite
from populora.evaluation.data import FOLDER_VARIABLE, DataSource
from populora.evaluation.suites.humaneval_plus import HumanEvalPlus
from populora.evaluation.suites.mbpp_plus import MBPPPlus

logger = logging.getLogger("grading")

SUITES: Mapping[str, type[PlusSuite]] = {"humaneval": HumanEvalPlus, "mbpp": MBPPPlus}
EVALPLUS = """
import json, sys, time
from concurrent.futures import ProcessPoolExecutor
from evalplus.data import get_human_eval_plus, get_mbpp_plus
from evalplus.eval._special_oracle import MBPP_OUTPUT_NOT_NONE_TASKS
from evalplus.evaluate import check_correctness, get_groundtruth

dataset, key, workers, path, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], float(sys.argv[5])
output, sys.stdout = sys.stdout, sys.stderr
problems = get_human_eval_plus() if dataset == "humaneval" else get_mbpp_plus()
expected = get_groundtruth(problems, key, MBPP_OUTPUT_NOT_NONE_TASKS if dataset == "mbpp" else [])
solutions = json.load(open(path))
start = time.perf_counter()
with ProcessPoolExecutor(workers) as pool:
    futures = {
        task: pool.submit(
            check_correctness, dataset, 0, problems[task], solution, expected[task],
            fast_check=True, min_time_limit=seconds,
        )
        for task, solution in solutions.items()
    }
    verdicts = {
        task: [future.result()[part][0] == "pass" for part in ("base", "plus")] for task, future in futures.items()
    }
json.dump({"seconds": time.perf_counter() - start, "verdicts": verdicts}, output)
"""


@dataclass(frozen=True)
class Graded:
    """One run of one grader."""

    seconds: float
    verdicts: Mapping[str, Sequence[bool]]
    """Base and plus of each task."""


def ours(kind: type[PlusSuite], items: Sequence[PlusItem], solutions: Mapping[str, str]) -> Graded:
    """Grade with this package."""
    start = time.perf_counter()
    with kind() as suite:
        verdicts = suite.verdicts([(item, solutions[item.id]) for item in items])
    seconds = time.perf_counter() - start
    return Graded(
        seconds, {item.id: (not v.base, not v.plus) for item, v in zip(items, verdicts, strict=True)}
    )


def theirs(
    python: str, dataset: str, rows: Sequence[object], solutions: Mapping[str, str], folder: Path
) -> Graded:
    """Grade with evalplus, whose data are the same rows."""
    data, samples = folder / "data.jsonl", folder / "samples.json"
    data.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    samples.write_text(json.dumps(solutions))
    variable = {"humaneval": "HUMANEVAL_OVERRIDE_PATH", "mbpp": "MBPP_OVERRIDE_PATH"}[dataset]
    finished = subprocess.run(
        [
            python,
            "-c",
            EVALPLUS,
            dataset,
            f"{dataset}-{len(rows)}",
            str(cores()),
            str(samples),
            str(CALL_SECONDS),
        ],
        env=os.environ | {variable: str(data), "XDG_CACHE_HOME": str(folder.parent / "evalplus-cache")},
        stdout=subprocess.PIPE,
        check=True,
    )
    return Graded(**json.loads(finished.stdout))


def main() -> None:
    """Grade with both in turns and write a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--evalplus", required=True, help="Python that imports evalplus 0.3.1")
    parser.add_argument("--dataset", choices=tuple(SUITES), default="mbpp")
    parser.add_argument("--solutions", help="file of the benchmark folder with task_id and solution")
    parser.add_argument("--items", type=int, default=378, help="so many of the first")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    kind = SUITES[args.dataset]
    items = kind().items()[: args.items]
    rows = [dict(row) for row in DataSource().load(kind.data).rows[: args.items]]
    solutions = {item.id: item.canonical for item in items}
    if args.solutions:
        with (Path(os.environ[FOLDER_VARIABLE]) / args.solutions).open() as file:
            given = {row["task_id"]: row["solution"] for row in map(json.loads, file)}
        solutions = {item.id: given[item.id] for item in items}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "evalplus"
        folder.mkdir()
        reference = theirs(args.evalplus, args.dataset, rows, solutions, folder)
        verdicts = ours(kind, items, solutions).verdicts
        times: dict[str, list[float]] = {"populora": [], "evalplus": []}
        for number in range(args.rounds):
            times["populora"].append(ours(kind, items, solutions).seconds)
            times["evalplus"].append(theirs(args.evalplus, args.dataset, rows, solutions, folder).seconds)
            logger.info("round %d: %s", number, {key: round(values[-1], 2) for key, values in times.items()})
    different = [task for task in solutions if tuple(verdicts[task]) != tuple(reference.verdicts[task])]
    mine, other = (min(values) for values in times.values())
    passed = sum(all(verdict) for verdict in verdicts.values())
    logger.info("%d solutions, %d pass, %d processes", len(items), passed, cores())
    logger.info("populora %.2f s, evalplus %.2f s: %.2f times as fast", mine, other, other / mine)
    logger.info("verdicts differ on %d: %s", len(different), ", ".join(different) or "none")


if __name__ == "__main__":
    main()
