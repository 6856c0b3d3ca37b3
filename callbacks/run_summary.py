"""What a run came to, and where things lie."""

import math
from collections.abc import Iterator
from statistics import fmean

import lightning as L
import rich
from rich.box import SIMPLE_HEAD
from rich.table import Table
from typing_extensions import override

from populora.callbacks.completion_samples import CompletionSamples
from populora.callbacks.held_out import Scores
from populora.callbacks.population_evaluation import PopulationEvaluation
from populora.callbacks.run import find_callback, module_of
from populora.callbacks.run_checkpoint import RunCheckpoint
from populora.callbacks.tensorboard import tensorboard_folders
from populora.population.members import Population


class RunSummary(L.Callback):
    """Prints the members with ratings and held-out scores, and where outputs are, when a run ends.

    Also after Ctrl-C. Scores are those of :class:`~populora.callbacks.PopulationEvaluation`, if there is one.
    """

    @override
    def teardown(self, trainer: L.Trainer, pl_module: L.LightningModule, stage: str) -> None:
        self._print(trainer)

    @override
    def on_exception(
        self, trainer: L.Trainer, pl_module: L.LightningModule, exception: BaseException
    ) -> None:
        if isinstance(exception, KeyboardInterrupt):
            self._print(trainer)

    def _print(self, trainer: L.Trainer) -> None:
        if not trainer.is_global_zero:
            return
        module, evaluation = module_of(trainer), find_callback(trainer, PopulationEvaluation)
        console = rich.get_console()
        console.print(member_table(module.population, evaluation, module.iteration))
        if evaluation is not None:
            console.print("\n".join(comparison(module.population, evaluation)), soft_wrap=True)
        console.print("\n".join(places(trainer)), soft_wrap=True, markup=False, highlight=False)


def member_table(population: Population, evaluation: PopulationEvaluation | None, iteration: int) -> Table:
    """Return a row for the base and each member; a child not evaluated yet has dashes."""
    base = None if evaluation is None else evaluation.base
    table = Table(
        title=f"Population after {iteration} iterations",
        caption="rating: μ ± σ" if base is None else "rating: μ ± σ; held-out: correct answers in %",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("member")
    for column in ("gen", "rating", *([] if base is None else [*base.by_task, "mean", "− base"])):
        table.add_column(column, justify="right")
    if base is not None:
        table.add_row("base", "", "", *_cells(base, base)[:-1], "")
    for member in population.members:
        rating = population.ratings[member.name]
        scores = None if evaluation is None else evaluation.latest(member)
        cells = [] if base is None else _cells(scores, base)
        table.add_row(member.name, str(member.generation), f"{rating.mu:.1f} ± {rating.sigma:.1f}", *cells)
    return table


def comparison(population: Population, evaluation: PopulationEvaluation) -> Iterator[str]:
    """Yield the students' scores against the base's, with what chance alone does to one score."""
    base = evaluation.base
    means = {s.name: latest.mean for s in population.students if (latest := evaluation.latest(s))}
    if base is None or not means:
        return
    mean = fmean(means.values())
    weakest, best = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    error = math.sqrt(mean * (1 - mean) / evaluation.answers_each)
    yield (
        f"Held-out accuracy before {base.mean:.1%} (base), after {mean:.1%} (mean of {len(means)} students), "
        f"{means[weakest]:.1%} (weakest, {weakest}), {means[best]:.1%} (best, {best})."
    )
    yield (
        f"One score is over {evaluation.answers_each} answers, standard error about {error:.1%}; weakest and "
        "best are picked on the same answers."
    )


def places(trainer: L.Trainer) -> Iterator[str]:
    """Yield where checkpoints, TensorBoard logs and samples are."""
    checkpoints = find_callback(trainer, RunCheckpoint)
    if checkpoints is not None:
        yield f"checkpoints  {checkpoints.location(trainer)}"
    samples = find_callback(trainer, CompletionSamples)
    if samples is not None and samples.path is not None and samples.path.exists():
        yield f"samples      {samples.path}"
    for folder in tensorboard_folders(trainer):
        yield f"TensorBoard  {folder}"
        yield f"             to look at it: tensorboard --logdir {folder}"


def _cells(scores: Scores | None, base: Scores) -> list[str]:
    if scores is None:
        return ["–"] * (len(base.by_task) + 2)
    tasks = [f"{100 * scores.by_task[task]:.1f}" for task in base.by_task]
    return [*tasks, f"{100 * scores.mean:.1f}", f"{100 * (scores.mean - base.mean):+.1f}"]
