"""Measures the embedded base on held-out problems: ``python -m populora.embedded.measure``."""

import argparse
import logging
import os
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from populora.config import VerifierConfig
from populora.embedded import MeasuredProblem, held_out_problems, model_path
from populora.embedded.programs import MAX_STEPS
from populora.records import Problem
from populora.tasks import Prompts, tasks
from populora.verifier import Verifier

logger = logging.getLogger(__name__)

Generate = Callable[[Sequence[list[int]]], list[str]]
"""Turns prompts, as token ids, into responses."""

TASKS = ("deduction", "abduction", "induction")
_MAX_TOKENS = 320
_MAX_MODEL_LEN = 768
_REFERENCES = 2
_ENGINE_STARTS = 3


@dataclass(frozen=True)
class Solving:
    """How often attempts at one task were right.

    Attributes:
        task: The task.
        share: Share of right attempts.
        readable: Share of attempts whose answer could be read.
        by_statements: Share of right attempts by number of statements.
    """

    task: str
    share: float
    readable: float
    by_statements: Mapping[int, float]


@dataclass(frozen=True)
class Proposing:
    """How good proposals for one task were.

    Attributes:
        task: The task.
        valid: Share of proposals that the verifier accepted.
        distinct: Distinct ones among these, as a share.
    """

    task: str
    valid: float
    distinct: float


def measure_solving(
    task: str, problems: Sequence[MeasuredProblem], prompts: Prompts, generate: Generate, verifier: Verifier
) -> Solving:
    """Samples one attempt per problem given (repeat a problem for more) and grades them."""
    kind = tasks[task]
    responses = generate([prompts.encode(kind.solve(prompts, problem)) for problem in problems])
    answers = [kind.read_answer(text) for text in responses]
    verdicts = verifier.grade(list(zip(problems, answers, strict=True)))
    groups: defaultdict[int, list[bool]] = defaultdict(list)
    for problem, verdict in zip(problems, verdicts, strict=True):
        groups[problem.statements].append(verdict.correct)
    return Solving(
        task,
        fmean(verdict.correct for verdict in verdicts),
        fmean(verdict.well_formed for verdict in verdicts),
        {statements: fmean(right) for statements, right in sorted(groups.items())},
    )


def measure_proposing(
    task: str, count: int, prompts: Prompts, generate: Generate, verifier: Verifier, seed: int = 0
) -> Proposing:
    """Samples proposals, each shown a few held-out problems as references, and validates them."""
    kind = tasks[task]
    pool = held_out_problems("induction" if task == "induction" else "deduction", 100, seed)
    rng = random.Random(seed)
    references: list[list[Problem]] = [
        list(rng.sample(pool, 1 if task == "induction" else rng.randint(0, _REFERENCES)))
        for _ in range(count)
    ]
    responses = generate([prompts.encode(kind.propose(prompts, shown)) for shown in references])
    drafts = [kind.read_proposal(text, shown) for text, shown in zip(responses, references, strict=True)]
    checked = verifier.validate([draft for draft in drafts if draft is not None])
    valid = [item.problem for item in checked if item.problem is not None]
    contents = {problem.inputs if task == "induction" else problem.program for problem in valid}
    return Proposing(task, len(valid) / count, len(contents) / max(1, len(valid)))


def start_engine(folder: Path, seed: int) -> Generate:
    """Starts vLLM on a model, again where a start fails, and returns its sampler at temperature 1."""
    from vllm import LLM, SamplingParams

    for attempt in range(1, _ENGINE_STARTS + 1):
        try:
            engine: Any = LLM(
                str(folder),
                dtype="float32",
                enforce_eager=True,
                max_model_len=_MAX_MODEL_LEN,
                max_num_seqs=256,
                seed=seed,
            )
            break
        except RuntimeError as error:
            if attempt == _ENGINE_STARTS:
                raise
            logger.warning("the engine did not start (%s); trying again", error)
    sampling = SamplingParams(temperature=1.0, max_tokens=_MAX_TOKENS)

    def generate(prompts: Sequence[list[int]]) -> list[str]:
        requests = [{"prompt_token_ids": prompt} for prompt in prompts]
        outputs = engine.generate(requests, sampling, use_tqdm=False)
        return [output.outputs[0].text for output in outputs]

    return generate


def table(solving: Sequence[Solving], proposing: Sequence[Proposing]) -> str:
    """Writes the figures as two Markdown tables, in percent."""
    columns = range(1, MAX_STEPS + 1)
    lines = [
        "| solved, % | all | " + " | ".join(map(str, columns)) + " | readable |",
        "|---" * (MAX_STEPS + 3) + "|",
    ]
    for row in solving:
        shares = [row.share, *(row.by_statements.get(n, float("nan")) for n in columns), row.readable]
        lines.append(f"| {row.task} | " + " | ".join(f"{100 * share:.0f}" for share in shares) + " |")
    lines += ["", "| proposed, % | valid | distinct |", "|---|---|---|"]
    lines += [f"| {row.task} | {100 * row.valid:.0f} | {100 * row.distinct:.0f} |" for row in proposing]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=model_path(), help="folder of the model")
    parser.add_argument("--problems", type=int, default=160, help="problems of each task")
    parser.add_argument("--attempts", type=int, default=4, help="attempts at each problem")
    parser.add_argument("--proposals", type=int, default=300, help="proposals for each task")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    from transformers import AutoTokenizer

    prompts = Prompts.load("compact", AutoTokenizer.from_pretrained(options.model))
    generate = start_engine(options.model, options.seed)
    with Verifier(VerifierConfig()) as verifier:
        solving = [
            measure_solving(
                task,
                held_out_problems(task, options.problems, options.seed) * options.attempts,
                prompts,
                generate,
                verifier,
            )
            for task in TASKS
        ]
        proposing = [
            measure_proposing(task, options.proposals, prompts, generate, verifier, options.seed)
            for task in TASKS
        ]
    logger.info("%s", table(solving, proposing))


if __name__ == "__main__":
    main()
