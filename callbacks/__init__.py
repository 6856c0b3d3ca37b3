"""Callbacks that watch and steer a co-evolution run.

Each is one class in one file; removing it from the config removes its behaviour and nothing else. They run in
the order of the config: ratings before evolution, evaluation before evolution.
"""

from populora.callbacks.archive import Archive
from populora.callbacks.completion_samples import CompletionSamples
from populora.callbacks.evolution import Evolution
from populora.callbacks.graceful_stop import GracefulStop
from populora.callbacks.population_evaluation import PopulationEvaluation
from populora.callbacks.population_statistics import PopulationStatistics
from populora.callbacks.rating_updates import RatingUpdates
from populora.callbacks.run_checkpoint import RunCheckpoint
from populora.callbacks.run_progress import RunProgress
from populora.callbacks.run_summary import RunSummary
from populora.callbacks.suite_evaluation import SuiteEvaluation
from populora.callbacks.teacher_difficulty import TeacherDifficulty
from populora.callbacks.throughput import Throughput

__all__ = [
    "Archive",
    "CompletionSamples",
    "Evolution",
    "GracefulStop",
    "PopulationEvaluation",
    "PopulationStatistics",
    "RatingUpdates",
    "RunCheckpoint",
    "RunProgress",
    "RunSummary",
    "SuiteEvaluation",
    "TeacherDifficulty",
    "Throughput",
]
