"""Scores on the published benchmark suites."""

import shutil
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import lightning as L
from typing_extensions import override

from populora.callbacks.run import (
    Evaluated,
    check_evaluated,
    data_of,
    evaluated_members,
    log_folder,
    module_of,
)
from populora.callbacks.tensorboard import log_scalars
from populora.errors import ConfigError
from populora.evaluation import report
from populora.evaluation.data import DataSource
from populora.evaluation.evaluator import Evaluator, Player
from populora.evaluation.loading import load_suites
from populora.evaluation.progress import EvaluationProgress
from populora.evaluation.results import BASE, Results, SuiteResult
from populora.evaluation.settings import EvaluationSettings
from populora.records import RolloutBatch


class SuiteEvaluation(L.Callback):
    """Lets the base and the members answer benchmark suites: in ``validate``, and now and then in ``fit``.

    All answer a suite's items in the same batches of the engine. Tables are printed; they, everything as JSON, and
    every response lie below ``suites/`` in the run's folder, accuracies in TensorBoard. An evaluation broken off
    goes on where it was. Nothing of a suite is ever trained on.

    Args:
        suites: Names of suites, or ``all``.
        every: Iterations between two evaluations of ``fit``, and one at its end; none: only in ``validate``.
        limit: Items of each suite, evenly spaced; none: all.
        data: Folder with the benchmarks' files; none: that of POPULORA_BENCHMARKS, else the Hugging Face hub.
        skip_missing: Go on without suites whose data are missing.
        members: ``students``, or ``all`` for teachers too.
        samples: Responses to each item, where a suite's own number shall not hold.
        temperature: Sampling temperature, likewise; 0 is greedy.
        max_tokens: Longest response, where the suites' own limits are too long.
        seed: Of the sampling.

    Attributes:
        results: The newest results; None before the first evaluation.

    Raises:
        ConfigError: an argument is out of bounds, or there is no such suite.
        DataError: a suite's data are missing.
    """

    def __init__(
        self,
        suites: Sequence[str],
        every: int | None = None,
        limit: int | None = None,
        data: str | None = None,
        skip_missing: bool = False,
        members: Evaluated = "students",
        samples: int | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        seed: int = 0,
    ) -> None:
        if every is not None and every < 1:
            raise ConfigError(f"SuiteEvaluation(every={every}): expected at least 1, or none")
        check_evaluated("SuiteEvaluation", members)
        self.results: Results | None = None
        self._settings = EvaluationSettings(limit, samples, temperature, max_tokens, seed)
        self._suites, self._missing = load_suites(suites, DataSource(data), self._settings, skip_missing)
        self._every = every
        self._members = members

    @property
    def longest_response(self) -> int:
        """Tokens of the longest response, which the engine must have room for."""
        return max(self._settings.decoding(suite).max_tokens for suite in self._suites)

    @override
    def on_train_batch_end(
        self,
        trainer: L.Trainer,
        pl_module: L.LightningModule,
        outputs: Any,
        batch: RolloutBatch,
        batch_idx: int,
    ) -> None:
        if self._every is not None and (batch.iteration + 1) % self._every == 0:
            self._evaluate(trainer)

    @override
    def on_train_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if self._every is not None and module_of(trainer).iteration % self._every != 0:
            self._evaluate(trainer)

    @override
    def on_validation_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if trainer.validating:
            self._evaluate(trainer)

    @override
    def teardown(self, trainer: L.Trainer, pl_module: L.LightningModule, stage: str) -> None:
        self._close()

    @override
    def on_exception(
        self, trainer: L.Trainer, pl_module: L.LightningModule, exception: BaseException
    ) -> None:
        self._close()

    def _close(self) -> None:
        for suite in self._suites:
            suite.close()

    def _evaluate(self, trainer: L.Trainer) -> None:
        data, module = data_of(trainer), module_of(trainer)
        data.synchronise()
        folder = _folder(trainer)
        players = self._players(trainer, folder / "responses")
        with EvaluationProgress() if trainer.validating else nullcontext() as bars:

            def listen(stage: str, done: int, total: int) -> None:
                data.tell(stage, done, total)
                if bars is not None:
                    bars(stage, done, total)

            evaluator = Evaluator(
                data.engine,
                module.tokenizer,
                module.prompts.chat,
                self._settings,
                listen,
                data.synchronise,
            )
            done: list[SuiteResult] = []
            for suite in self._suites:
                done.append(evaluator.evaluate(suite, players))
                self.results = Results(
                    str(module.base.path), f"{module.iteration} iterations", tuple(done), tuple(self._missing)
                )
                report.write(self.results, folder)
        if self.results is not None:
            report.show(self.results)
            log_scalars(trainer, dict(self.results.scalars()), module.iteration)

    def _players(self, trainer: L.Trainer, folder: Path) -> list[Player]:
        module, engine = module_of(trainer), data_of(trainer).engine
        members = evaluated_members(trainer, self._members)
        return [
            Player(BASE, None, str(module.base_folder), folder / BASE),
            *(Player(m.name, m.name, engine.adapters[m.name].fingerprint, folder / m.name) for m in members),
        ]


def _folder(trainer: L.Trainer) -> Path:
    """Return the folder of this iteration's evaluation, with what the base answered in an earlier one."""
    root, iteration = log_folder(trainer) / "suites", module_of(trainer).iteration
    folder = root / f"iteration-{iteration}"
    own = folder / "responses" / BASE
    earlier = sorted(root.glob(f"*/responses/{BASE}"), key=lambda path: path.stat().st_mtime)
    if earlier and not own.exists():
        shutil.copytree(earlier[-1], own)
    return folder
