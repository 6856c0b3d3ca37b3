"""Responses as records of a file and as Markdown that nothing in them can escape from."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from populora.records import Attempt, Problem, Proposal

SHOWN_CHARACTERS = 6000
"""Of a prompt or response in Markdown; the file has all of them."""


@dataclass(frozen=True)
class Sample:
    """A proposal or an attempt with its verdict."""

    iteration: int
    """Completed iterations."""
    kind: str
    """``proposal`` or ``attempt``."""
    member: str
    task: str
    verdict: str
    """``valid`` or ``correct``, else the category of the failure."""
    solve_rate: float | None
    """Of a valid proposal."""
    reward: float
    prompt: str
    response: str
    tokens: int
    """Length of the response."""
    finish_reason: str
    problem: Problem | None


def proposal_sample(proposal: Proposal, prompt: str, iteration: int) -> Sample:
    """Return the sample of a proposal whose prompt decodes to ``prompt``."""
    return Sample(
        iteration=iteration,
        kind="proposal",
        member=proposal.member.name,
        task=proposal.task,
        verdict=proposal.failure or "valid",
        solve_rate=proposal.solve_rate,
        reward=proposal.reward,
        prompt=prompt,
        response=proposal.completion.text,
        tokens=len(proposal.completion.token_ids),
        finish_reason=proposal.completion.finish_reason,
        problem=proposal.problem,
    )


def attempt_sample(attempt: Attempt, prompt: str, iteration: int) -> Sample:
    """Return the sample of an attempt whose prompt decodes to ``prompt``."""
    return Sample(
        iteration=iteration,
        kind="attempt",
        member=attempt.member.name,
        task=attempt.problem.task,
        verdict=attempt.verdict.failure or "correct",
        solve_rate=None,
        reward=attempt.reward,
        prompt=prompt,
        response=attempt.completion.text,
        tokens=len(attempt.completion.token_ids),
        finish_reason=attempt.completion.finish_reason,
        problem=attempt.problem,
    )


def markdown(samples: Iterable[Sample]) -> str:
    """Render samples as Markdown in which no text of theirs can act as Markdown or HTML."""
    return "\n\n---\n\n".join(_section(sample) for sample in samples)


def _section(sample: Sample) -> str:
    rate = "" if sample.solve_rate is None else f", solve rate {sample.solve_rate:.2f}"
    tokens = f"{sample.tokens} tokens, ended by {sample.finish_reason}"
    return "\n\n".join(
        [
            f"**{sample.kind} of {sample.member}**, {sample.task}: reward {sample.reward:+.2f}{rate}, {tokens}",
            f"verdict\n\n{fenced(sample.verdict)}",
            f"prompt\n\n{fenced(sample.prompt)}",
            f"response\n\n{fenced(sample.response)}",
        ]
    )


def fenced(text: str) -> str:
    """Put text into a code block whose fence is longer than any run of backticks in it.

    Characters that XML does not allow, lone surrogates and line breaks other than ``\\n`` are escaped.
    """
    shown = text[:SHOWN_CHARACTERS]
    visible = re.sub(
        r"[^\n\t\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", _escape, shown
    )
    cut = f"\n… {len(text) - len(shown):,} more characters" if len(text) > len(shown) else ""
    longest = max((len(run) for run in re.findall("`+", visible)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{visible}{cut}\n{fence}"


def _escape(match: re.Match[str]) -> str:
    return match.group().encode("unicode_escape").decode("ascii")
