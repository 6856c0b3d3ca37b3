"""The interface of a task type: what its prompts ask for and how its answers are judged."""

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from populora.config import RolloutConfig
from populora.records import Draft, Problem
from populora.tasks.buffer import ProblemBuffer
from populora.tasks.prompts import Prompts


@dataclass(frozen=True)
class Trial:
    """A run that decides an answer: correct when the program gives every output on its input."""

    program: str
    """Of a model; screen it (:mod:`populora.tasks.screening`) before it runs."""
    inputs: tuple[str, ...]
    """Argument lists, each the text between the parentheses of a call."""
    outputs: tuple[str, ...]
    """The canonical literals expected, one per input."""


class Task(ABC):
    """A type of problem. Stateless: one instance serves a whole run.

    Model text is data here: what cannot be read is None, never an exception.
    """

    name: str

    def configure(self, config: RolloutConfig) -> "Task":
        """Return this task with the settings of a run; most tasks have none."""
        return self

    def references(self, buffer: ProblemBuffer, count: int, rng: random.Random) -> list[Problem]:
        """Draw what a proposal prompt shows: up to ``count`` problems of the same task."""
        return buffer.sample(self.name, count, rng)

    @abstractmethod
    def propose(self, prompts: Prompts, references: Sequence[Problem]) -> str:
        """Write the message that asks a teacher for a new problem."""

    @abstractmethod
    def read_proposal(self, text: str, references: Sequence[Problem]) -> Draft | None:
        """Read a teacher's response; None when it is malformed.

        Args:
            text: The whole response, thought included.
            references: What the prompt showed.
        """

    @abstractmethod
    def solve(self, prompts: Prompts, problem: Problem) -> str:
        """Write the message that asks a student to solve ``problem``."""

    @abstractmethod
    def read_answer(self, text: str) -> str | None:
        """Read a student's response as normalised text; None when it is malformed."""

    @abstractmethod
    def trial(self, problem: Problem, answer: str) -> Trial | bool:
        """Say how a readable answer is judged: at once by comparing text, or by a run.

        Args:
            problem: The problem, of this task.
            answer: What :meth:`read_answer` returned.

        Returns:
            True or False when text alone decides, else the run that does.
        """


def visible(problem: Problem) -> tuple[tuple[str, str], ...]:
    """First half of the (input, output) pairs: what an induction prompt shows."""
    return _pairs(problem)[: len(problem.inputs) // 2]


def hidden(problem: Problem) -> tuple[tuple[str, str], ...]:
    """Second half of the (input, output) pairs: what an induced program is judged on."""
    return _pairs(problem)[len(problem.inputs) // 2 :]


def _pairs(problem: Problem) -> tuple[tuple[str, str], ...]:
    return tuple(zip(problem.inputs, problem.outputs, strict=True))
