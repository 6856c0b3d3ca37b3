"""Proposals and attempts as what the gradient sees of both: tokens, their log-probabilities and a reward."""

from collections.abc import Sequence
from dataclasses import dataclass

from populora.records import Attempt, Member, Proposal, Role, RolloutBatch


@dataclass(frozen=True)
class Sample:
    """One response with its reward."""

    member: Member
    """Who wrote it, as it was when sampled."""
    role: Role
    """The part played: ``TEACHER`` for a proposal, ``STUDENT`` for an attempt; never ``AGENT``."""
    task: str
    group: int
    """Responses to the same prompt share a group; unique within a batch."""
    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    """Generated tokens with the end-of-sequence token, which is learnt like any other."""
    logprobs: tuple[float, ...]
    """The engine's log-probability of each completion token at the sampling temperature."""
    reward: float

    def __post_init__(self) -> None:
        if not self.prompt_ids:
            raise ValueError(
                f"a sample of {self.member.name} has an empty prompt; expected one token or more"
            )
        if len(self.logprobs) != len(self.completion_ids):
            raise ValueError(
                f"a sample of {self.member.name} has {len(self.completion_ids)} completion tokens but "
                f"{len(self.logprobs)} log-probabilities; the engine must return one for each token"
            )


def samples_of(batch: RolloutBatch) -> list[Sample]:
    """Return every response of a batch, proposals first; attempts at problems from the buffer included."""
    proposals = [_sample(proposal, Role.TEACHER, proposal.task) for proposal in batch.proposals]
    attempts = [_sample(attempt, Role.STUDENT, attempt.problem.task) for attempt in batch.attempts]
    return proposals + attempts


def roster(samples: Sequence[Sample]) -> tuple[Member, ...]:
    """Return the members that have samples, in order of first appearance."""
    return tuple(dict.fromkeys(sample.member for sample in samples))


def _sample(response: Proposal | Attempt, role: Role, task: str) -> Sample:
    return Sample(
        member=response.member,
        role=role,
        task=task,
        group=response.group,
        prompt_ids=response.prompt_ids,
        completion_ids=response.completion.token_ids,
        logprobs=response.completion.logprobs,
        reward=response.reward,
    )
