"""Asking teachers for problems and validating what they write."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from populora.config import RolloutConfig
from populora.records import Completion, Problem, Validation
from populora.rollouts.engine import Engine
from populora.rollouts.judging import generate_and_judge
from populora.rollouts.solving import Sampling, StageListener
from populora.tasks import Prompts, Task
from populora.tasks.buffer import ProblemBuffer
from populora.verifier import Verifier


@dataclass(frozen=True)
class Ask:
    """A proposal prompt for one teacher."""

    teacher: str
    match: int
    task: str
    references: tuple[Problem, ...]
    prompt_ids: tuple[int, ...]


@dataclass(frozen=True)
class Written:
    """One validated response to an :class:`Ask`."""

    completion: Completion
    validation: Validation


class Proposer:
    """Prompts all teachers in one batch and validates their problems.

    Attributes:
        reserved: Programs of an evaluation set; a proposal that repeats one is invalid, so that no member is
            ever trained on them.
        propose_seconds: Time the last call spent generating.
        validate_seconds: Time the last call spent verifying after that.
    """

    def __init__(
        self,
        config: RolloutConfig,
        engine: Engine,
        verifier: Verifier,
        prompts: Prompts,
        tasks: Mapping[str, Task],
    ) -> None:
        self._config = config
        self._engine = engine
        self._verifier = verifier
        self._prompts = prompts
        self._tasks = tasks
        self.reserved: frozenset[str] = frozenset()
        self.propose_seconds = 0.0
        self.validate_seconds = 0.0

    def ask(self, teachers: Sequence[str], buffer: ProblemBuffer, rng: random.Random) -> list[Ask]:
        """Draw references for the prompts of each teacher, one teacher for each match, tasks in equal shares."""
        return [
            self._fitting(
                teacher, match, name, self._tasks[name].references(buffer, self._config.references, rng)
            )
            for match, teacher in enumerate(teachers)
            for name in self._config.tasks
            for _ in range(self._config.prompts_per_task)
        ]

    def _fitting(self, teacher: str, match: int, task: str, references: Sequence[Problem]) -> Ask:
        """Show as many references as leave room for the longest proposal, at least one if there is one."""
        room = self._engine.max_model_len - self._config.max_proposal_tokens
        shown = tuple(references)
        while True:
            prompt_ids = tuple(self._prompts.encode(self._tasks[task].propose(self._prompts, shown)))
            if len(prompt_ids) <= room or len(shown) <= 1:
                return Ask(teacher, match, task, shown, prompt_ids)
            shown = shown[:-1]

    def propose(
        self, asks: Sequence[Ask], iteration: int, sampling: Sampling, listener: StageListener
    ) -> list[tuple[Written, ...]]:
        """Return ``sampling.count`` validated proposals for each prompt, in order."""
        listener("propose", 0, len(asks) * sampling.count)
        judged = generate_and_judge(
            self._engine,
            sampling.requests([(ask.teacher, ask.prompt_ids) for ask in asks], self._prompts.stop),
            lambda index, completions: self._validate(asks[index], completions, iteration),
            lambda done, total: listener("propose", done, total),
        )
        self.propose_seconds, self.validate_seconds = judged.generating, judged.waiting
        return [tuple(Written(*each) for each in responses) for responses in judged.responses]

    def _validate(self, ask: Ask, written: Sequence[Completion], iteration: int) -> list[Validation]:
        drafts = [
            self._tasks[ask.task].read_proposal(completion.text, ask.references)
            if completion.finish_reason == "stop"
            else None
            for completion in written
        ]
        judged = iter(self._verifier.validate([draft for draft in drafts if draft is not None]))
        return [
            Validation(None, "malformed")
            if draft is None
            else self._sign(next(judged), ask.teacher, iteration)
            for draft in drafts
        ]

    def _sign(self, validation: Validation, author: str, iteration: int) -> Validation:
        if validation.problem is None:
            return validation
        if validation.problem.program in self.reserved:
            return Validation(None, "reserved for evaluation")
        return Validation(replace(validation.problem, author=author, iteration=iteration))
