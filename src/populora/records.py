"""What flows through one iteration: each stage hands the next frozen records, never dicts."""

import hashlib
import math
from dataclasses import astuple, dataclass
from enum import StrEnum
from typing import Literal


class Role(StrEnum):
    """What a member does; ``AGENT`` plays both parts (the single-agent baseline)."""

    TEACHER = "teacher"
    STUDENT = "student"
    AGENT = "agent"


@dataclass(frozen=True)
class Member:
    """One adapter of the population: the one identity in bank, engine, ratings, logs and files."""

    name: str
    """Slot in the population, for example ``teacher-2``; stays when evolution replaces the weights."""
    role: Role
    generation: int = 0
    """0 for a fresh adapter, else one more than the oldest parent's."""
    born: int = 0
    """First iteration that the present line of weights plays in the slot; (name, born) is unique."""
    version: int = 0
    """Grows by one whenever the weights change; never reused within a run."""


@dataclass(frozen=True)
class Match:
    """A teacher and the student who attempts its problems in one iteration."""

    teacher: Member
    student: Member
    win_probability: float
    """Chance in (0, 1), from the ratings before the match, that the student wins."""


@dataclass(frozen=True)
class Completion:
    """One sampled response."""

    token_ids: tuple[int, ...]
    """Generated tokens, the end-of-sequence token included when it was produced."""
    logprobs: tuple[float, ...]
    """Log-probability of each token under the distribution it was sampled from."""
    text: str
    """Decoded tokens without special tokens."""
    finish_reason: Literal["stop", "length"]


@dataclass(frozen=True)
class Draft:
    """A problem as a teacher wrote it: parsed, not yet run."""

    task: str
    program: str
    inputs: tuple[str, ...]
    """Canonical argument lists, each the text between the parentheses of a call, e.g. ``[1, 2], 3``."""
    message: str | None = None


@dataclass(frozen=True)
class Problem:
    """A validated problem; outputs come from running the program, never from a model."""

    task: str
    program: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    """Canonical literals, one per input. Induction shows the first half of the pairs and hides the rest."""
    message: str | None = None
    author: str | None = None
    """Name of the teacher; None for a problem of the evaluation set."""
    iteration: int = 0

    @property
    def key(self) -> str:
        """Hex digest (16 characters) of the content: equal problems have equal keys."""
        content = repr((self.task, self.program, self.inputs, self.outputs, self.message))
        return hashlib.sha256(content.encode("utf-8", "backslashreplace")).hexdigest()[:16]


@dataclass(frozen=True)
class Validation:
    """What the verifier says of a draft: a problem, or the category of its failure."""

    problem: Problem | None
    failure: str | None = None


@dataclass(frozen=True)
class Verdict:
    """What the verifier says of an answer."""

    correct: bool
    failure: str | None = None
    """Category when not correct: ``malformed``, ``wrong``, ``timeout``, ``exception: ValueError`` …"""

    @property
    def well_formed(self) -> bool:
        """Whether the response could be read at all."""
        return self.failure != "malformed"


@dataclass(frozen=True)
class Proposal:
    """A teacher's response to a proposal prompt, judged."""

    member: Member
    task: str
    match: int
    """Index into the batch's matches."""
    group: int
    """Responses to the same prompt share a group; group numbers are unique within a batch."""
    prompt_ids: tuple[int, ...]
    completion: Completion
    problem: Problem | None
    failure: str | None
    solve_rate: float | None
    """Share of the matched student's attempts that are correct, in [0, 1]; None when invalid."""
    reward: float


@dataclass(frozen=True)
class Attempt:
    """A student's response to one problem, judged."""

    member: Member
    problem: Problem
    match: int
    group: int
    prompt_ids: tuple[int, ...]
    completion: Completion
    verdict: Verdict
    reward: float
    from_buffer: bool = False
    """Drawn from the buffer to fill the match: trains the student, does not count for rating or teacher."""


@dataclass(frozen=True)
class Timings:
    """Seconds spent in each stage of collecting a batch."""

    sync: float = 0.0
    propose: float = 0.0
    validate: float = 0.0
    """After the last proposal was there; most validations happen while others are written."""
    solve: float = 0.0
    grade: float = 0.0
    """After the last attempt was there."""


@dataclass(frozen=True)
class RolloutBatch:
    """Everything one iteration produced, from matches to rewards."""

    iteration: int
    """Counts from 0."""
    matches: tuple[Match, ...]
    proposals: tuple[Proposal, ...]
    attempts: tuple[Attempt, ...]
    timings: Timings = Timings()

    def solve_rate(self, match: int) -> float | None:
        """Share of correct attempts of one match on its own teacher's problems; None without any."""
        verdicts = [a.verdict.correct for a in self.attempts if a.match == match and not a.from_buffer]
        return sum(verdicts) / len(verdicts) if verdicts else None

    @property
    def new_problems(self) -> tuple[Problem, ...]:
        """The valid problems of this iteration, in order of proposal."""
        return tuple(p.problem for p in self.proposals if p.problem is not None)

    @property
    def generated_tokens(self) -> int:
        """Tokens sampled in this iteration."""
        completions = [p.completion for p in self.proposals] + [a.completion for a in self.attempts]
        return sum(len(completion.token_ids) for completion in completions)


@dataclass(frozen=True)
class MemberUpdate:
    """What one gradient step did to one member."""

    member: Member
    """As it was sampled, before the step."""
    stepped: bool
    """False when every group was flat or the gradient was not finite: nothing changed."""
    samples: int
    tokens: int
    """Completion tokens of all samples, those of flat groups included: the denominator of the loss."""
    flat_share: float
    """Share of groups whose rewards are all equal, in [0, 1]."""
    loss: float
    gradient_norm: float
    """Before clipping."""
    entropy: float
    """Mean entropy in nats over the completion tokens that passed through the model: samples without advantage do
    not. NaN when none passed, as for the three below."""
    clip_share: float
    """Share of those tokens whose ratio was clipped or whose importance weight was capped, in [0, 1]."""
    mismatch: float
    """Mean |log p(trainer) − log p(engine)| over those tokens."""
    kl: float = 0.0
    """Mean estimate of KL(policy ‖ base) over those tokens; 0 while the KL weight is 0."""

    @property
    def finite(self) -> bool:
        """Whether loss and gradient are numbers; else the step was skipped."""
        return math.isfinite(self.loss) and math.isfinite(self.gradient_norm)


@dataclass(frozen=True)
class StepTimings:
    """Seconds spent in each stage of a training step."""

    pack: float = 0.0
    """Advantages and micro-batches."""
    forward: float = 0.0
    backward: float = 0.0
    optimizer: float = 0.0
    """Clipping included."""


@dataclass(frozen=True)
class Update:
    """What one training step did."""

    members: tuple[MemberUpdate, ...]
    tokens: int
    """Tokens of the sequences learnt from, prompts included, each as often as it was answered."""
    passed_tokens: int
    """Tokens passed through the model for them: prompts that samples share once, and no padding."""
    timings: StepTimings = StepTimings()

    @property
    def seconds(self) -> float:
        """Wall clock of the step."""
        return float(sum(astuple(self.timings)))
