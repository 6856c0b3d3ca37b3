"""Putting problems to members and grading what they answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from populora.records import Completion, Problem, Verdict
from populora.rollouts.engine import Engine, GenerationRequest
from populora.rollouts.judging import generate_and_judge
from populora.seeding import derive
from populora.tasks import Prompts, Task
from populora.verifier import Verifier

StageListener = Callable[[str, int, int], None]
"""Called with a stage's name, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class Sampling:
    """How responses are sampled."""

    count: int
    """Responses to each prompt."""
    max_tokens: int
    temperature: float
    """0 is greedy."""
    seed: int
    """Decides all randomness together with the request's place in its batch."""

    def requests(
        self, prompts: Sequence[tuple[str | None, tuple[int, ...]]], stop: tuple[str, ...]
    ) -> list[GenerationRequest]:
        """Return a batch of requests for (member, prompt) pairs."""
        return [
            GenerationRequest(
                prompt_ids=prompt_ids,
                member=member,
                count=self.count,
                max_tokens=self.max_tokens,
                temperature=self.temperature,
                seed=derive(self.seed, index),
                stop=stop,
            )
            for index, (member, prompt_ids) in enumerate(prompts)
        ]


@dataclass(frozen=True)
class Question:
    """A problem for one member; None is the base."""

    problem: Problem
    member: str | None


@dataclass(frozen=True)
class Answer:
    """One graded response."""

    prompt_ids: tuple[int, ...]
    completion: Completion
    verdict: Verdict


class Solver:
    """Generates answers for all members in one batch and grades them.

    Attributes:
        solve_seconds: Time the last call spent generating.
        grade_seconds: Time the last call spent verifying after that.
    """

    def __init__(
        self, engine: Engine, verifier: Verifier, prompts: Prompts, tasks: Mapping[str, Task]
    ) -> None:
        self._engine = engine
        self._verifier = verifier
        self._prompts = prompts
        self._tasks = tasks
        self.solve_seconds = 0.0
        self.grade_seconds = 0.0

    def solve(
        self, questions: Sequence[Question], sampling: Sampling, listener: StageListener
    ) -> list[tuple[Answer, ...]]:
        """Return ``sampling.count`` graded answers to each question, in order."""
        prompts = [self._encode(question.problem) for question in questions]
        listener("solve", 0, len(questions) * sampling.count)
        judged = generate_and_judge(
            self._engine,
            sampling.requests(
                [(q.member, prompt_ids) for q, prompt_ids in zip(questions, prompts, strict=True)],
                self._prompts.stop,
            ),
            lambda index, completions: self._grade(questions[index].problem, completions),
            lambda done, total: listener("solve", done, total),
        )
        self.solve_seconds, self.grade_seconds = judged.generating, judged.waiting
        return [
            tuple(Answer(prompt_ids, completion, verdict) for completion, verdict in responses)
            for prompt_ids, responses in zip(prompts, judged.responses, strict=True)
        ]

    def _encode(self, problem: Problem) -> tuple[int, ...]:
        return tuple(self._prompts.encode(self._tasks[problem.task].solve(self._prompts, problem)))

    def _read(self, problem: Problem, completion: Completion) -> str | None:
        """A response cut short is malformed, whatever it holds."""
        if completion.finish_reason == "length":
            return None
        return self._tasks[problem.task].read_answer(completion.text)

    def _grade(self, problem: Problem, completions: Sequence[Completion]) -> Sequence[Verdict]:
        return self._verifier.grade([(problem, self._read(problem, each)) for each in completions])
