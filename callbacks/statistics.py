"""What a batch and an update say about the population: pure functions from records to tagged values.

A tag is ``quantity/group``; the group is a member, a task type, or ``all`` for everything pooled.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean

from populora.records import Attempt, Proposal, RolloutBatch, Update

POOLED = "all"
"""Group of everything together."""

_UPDATE_QUANTITIES = (
    "entropy", "mismatch", "gradient_norm", "flat_share", "kl", "clip_share", "loss", "samples", "stepped",
    "finite",
)  # fmt: skip


def grouped_means(quantity: str, pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return the mean value of each group and of all pairs together; nothing without pairs."""
    groups = defaultdict(list)
    for group, value in pairs:
        groups[group].append(value)
        groups[POOLED].append(value)
    return {f"{quantity}/{group}": fmean(values) for group, values in groups.items()}


def proposal_scalars(batch: RolloutBatch) -> dict[str, float]:
    """Valid rate, rewards, lengths and distinct share of the teachers' proposals."""
    proposals = batch.proposals
    return {
        **grouped_means("valid_rate", ((p.task, p.problem is not None) for p in proposals)),
        **grouped_means("valid_rate", ((p.member.name, p.problem is not None) for p in proposals)),
        **distinct_shares(proposals),
        **_response_scalars("proposal", proposals),
    }


def attempt_scalars(batch: RolloutBatch) -> dict[str, float]:
    """Solve rates, rewards and lengths of the students' attempts.

    ``solve_rate/<teacher>`` is that of the teacher's match, ``solve_rate/<student>`` is over the student's
    matches. Problems from the buffer are apart, under ``buffer_solve_rate``.
    """
    own = [a for a in batch.attempts if not a.from_buffer]
    drawn = [a for a in batch.attempts if a.from_buffer]
    by_teacher = ((batch.matches[a.match].teacher.name, a.verdict.correct) for a in own)
    return {
        **grouped_means("buffer_solve_rate", ((a.member.name, a.verdict.correct) for a in drawn)),
        **grouped_means("solve_rate", ((a.problem.task, a.verdict.correct) for a in own)),
        **grouped_means("solve_rate", ((a.member.name, a.verdict.correct) for a in own)),
        **grouped_means("solve_rate", by_teacher),
        **_response_scalars("attempt", batch.attempts),
    }


def distinct_shares(proposals: Sequence[Proposal]) -> dict[str, float]:
    """Share of valid problems that repeat no other of the same teacher and iteration, pooled of anyone's."""
    groups = defaultdict(list)
    for proposal in proposals:
        if proposal.problem is not None:
            groups[proposal.member.name].append(proposal.problem.key)
            groups[POOLED].append(proposal.problem.key)
    return {f"distinct_share/{group}": len(set(keys)) / len(keys) for group, keys in groups.items()}


def failure_counts(batch: RolloutBatch) -> Counter[str]:
    """Count failures by kind; the part after a colon, such as an exception's type, is left out."""
    proposals = ("proposal", (p.failure for p in batch.proposals))
    attempts = ("attempt", (a.verdict.failure for a in batch.attempts))
    return Counter(
        f"{kind}_failures/{failure.partition(':')[0]}"
        for kind, failures in (proposals, attempts)
        for failure in failures
        if failure is not None
    )


def update_scalars(update: Update) -> dict[str, float]:
    """What the gradient step reports of each member, and its mean over members; not a number is left out."""
    return {
        tag: value
        for quantity in _UPDATE_QUANTITIES
        for tag, value in grouped_means(quantity, _reported(update, quantity)).items()
    }


def _reported(update: Update, quantity: str) -> Iterator[tuple[str, float]]:
    for member_update in update.members:
        value = float(getattr(member_update, quantity))
        if not math.isnan(value):
            yield member_update.member.name, value


def _response_scalars(kind: str, responses: Sequence[Proposal] | Sequence[Attempt]) -> dict[str, float]:
    """Mean reward, length in tokens and truncated share, by member."""
    named = [(r.member.name, r) for r in responses]
    return {
        **grouped_means(f"{kind}_reward", ((name, r.reward) for name, r in named)),
        **grouped_means(f"{kind}_tokens", ((name, len(r.completion.token_ids)) for name, r in named)),
        **grouped_means(
            f"{kind}_truncated", ((name, r.completion.finish_reason == "length") for name, r in named)
        ),
    }
