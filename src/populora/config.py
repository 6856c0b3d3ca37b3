"""Every setting of a run, as dataclasses without any heavy import.

The docstring under a field is its help text. Fields marked [D] are decisions where the paper
(arXiv 2605.16727) is silent; the value is our default.
"""

import os
from dataclasses import dataclass, field
from typing import Literal

from populora.errors import ConfigError


def cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)


@dataclass(frozen=True)
class BaseConfig:
    """The frozen language model that all adapters share."""

    path: str = "embedded"
    """`embedded` (ships with the package), a local folder, or a Hugging Face hub id."""
    revision: str | None = None
    """Hub revision; pin it for reproducible runs."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Weights' type in trainer and engine; auto: float32 on a CPU, bfloat16 on an accelerator."""
    prompts: str = "auto"
    """`compact`, `chat`, `base`, or a folder of templates; auto: compact for the embedded base, chat where
    the tokenizer has a chat template, else base."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, about a third more time."""


@dataclass(frozen=True)
class AdapterConfig:
    """The shape of every adapter."""

    rank: int = 32
    """Rank r of the update (α/r)·B·A; the paper's 32. All members share it."""
    alpha: float = 64.0
    """Scale α of the update."""
    target_modules: str | list[str] = "all-linear"
    """Names of the adapted modules; all linear projections [D]."""

    def __post_init__(self) -> None:
        _require(1 <= self.rank <= 512, f"model.adapter.rank must be in 1 … 512, got {self.rank}")
        _require(self.alpha > 0, f"model.adapter.alpha must be positive, got {self.alpha}")


@dataclass(frozen=True)
class PopulationConfig:
    """Who plays."""

    teachers: int = 4
    """Number of teacher adapters (paper: 1, 4, 8)."""
    students: int = 4
    """Number of student adapters (paper: 1, 4, 8)."""
    shared: bool = False
    """True: one adapter plays both roles, the single-agent baseline; teachers and students must be 1."""

    def __post_init__(self) -> None:
        for role, count in (("teachers", self.teachers), ("students", self.students)):
            _require(count >= 1, f"model.population.{role} must be at least 1, got {count}")
        _require(
            not self.shared or self.teachers == self.students == 1,
            "model.population.shared needs teachers: 1 and students: 1 (one adapter plays both), got "
            f"teachers: {self.teachers}, students: {self.students}",
        )

    @property
    def size(self) -> int:
        """Number of adapters."""
        return 1 if self.shared else self.teachers + self.students


@dataclass(frozen=True)
class RewardConfig:
    """Rewards of the paper (table in section 5 of the method)."""

    correct: float = 1.0
    """Student: right answer."""
    wrong: float = -0.5
    """Student: well-formed but wrong."""
    malformed: float = -1.0
    """Student: no readable answer."""
    invalid: float = -1.0
    """Teacher: the proposal is malformed or not a valid problem."""
    unsolved: float = 0.0
    """Teacher: valid, but no attempt was right. Solved ones earn 1 − solve rate."""


@dataclass(frozen=True)
class LearningConfig:
    """The policy-gradient step each adapter takes once an iteration."""

    advantage: str = "reinforce_plus_plus_baseline"
    """Estimator: grpo, dr_grpo, reinforce_plus_plus_baseline (the paper's), task_relative, or a dotted path."""
    learning_rate: float = 2e-5
    """AdamW learning rate of every adapter [D]."""
    betas: tuple[float, float] = (0.9, 0.999)
    """AdamW moment decays."""
    weight_decay: float = 0.0
    """AdamW decoupled weight decay."""
    max_gradient_norm: float = 1.0
    """Clip of each adapter's own gradient norm."""
    clip_low: float = 0.2
    """Lower clip of the probability ratio."""
    clip_high: float = 0.28
    """Upper clip of the probability ratio (clip-higher, DAPO)."""
    kl_weight: float = 0.0
    """Weight of the KL term against the base; 0 skips its forward pass."""
    importance_cap: float = 2.0
    """Truncation of the trainer/engine importance weight."""
    tokens_per_micro_batch: int = 8192
    """Token budget, padding included, of one forward and backward pass."""
    mismatch_warning: float = 0.02
    """Mean |Δ log p| between engine and trainer above which a member is warned about."""
    mismatch_limit: float = 0.5
    """Mean |Δ log p| above which a member's step counts as bad."""
    bad_steps: int = 3
    """Bad steps of one member in a row that end the run: a mismatch above the limit, or a loss or gradient that is not
    finite (such a step is skipped)."""

    def __post_init__(self) -> None:
        _require(
            self.learning_rate > 0, f"model.learning.learning_rate must be positive, got {self.learning_rate}"
        )
        _require(0 < self.clip_low < 1, f"model.learning.clip_low must be in (0, 1), got {self.clip_low}")
        _require(self.clip_high > 0, f"model.learning.clip_high must be positive, got {self.clip_high}")
        _require(
            self.importance_cap >= 1,
            f"model.learning.importance_cap must be at least 1, got {self.importance_cap}",
        )
        _require(self.bad_steps >= 1, f"model.learning.bad_steps must be at least 1, got {self.bad_steps}")
        _require(
            self.mismatch_limit > 0,
            f"model.learning.mismatch_limit must be positive, got {self.mismatch_limit}",
        )
        _require(
            self.tokens_per_micro_batch >= 1,
            f"model.learning.tokens_per_micro_batch must be at least 1, got {self.tokens_per_micro_batch}",
        )


@dataclass(frozen=True)
class RolloutConfig:
    """What each match does in one iteration."""

    tasks: list[str] = field(default_factory=lambda: ["deduction", "abduction", "induction"])
    """Task types, in equal shares."""
    prompts_per_task: int = 1
    """Proposal prompts per match and task type."""
    group_size: int = 4
    """Proposals sampled from each prompt, G [D]."""
    attempts: int = 8
    """Attempts the student makes at each problem, n."""
    references: int = 6
    """Most reference problems shown in a proposal prompt."""
    induction_inputs: int = 10
    """Inputs an induction problem needs; half of the pairs are shown, half hidden."""
    max_proposal_tokens: int = 1024
    """Longest proposal."""
    max_attempt_tokens: int = 1024
    """Longest attempt."""
    temperature: float = 1.0
    """Sampling temperature of proposals and attempts."""
    buffer_capacity: int = 4096
    """Problems the shared buffer keeps per task; the oldest leave."""

    def __post_init__(self) -> None:
        _require(bool(self.tasks), "data.rollout.tasks must name at least one task, got none")
        for name in (
            "prompts_per_task",
            "group_size",
            "attempts",
            "max_proposal_tokens",
            "max_attempt_tokens",
        ):
            _require(
                getattr(self, name) >= 1, f"data.rollout.{name} must be at least 1, got {getattr(self, name)}"
            )
        _require(self.references >= 0, f"data.rollout.references must not be negative, got {self.references}")
        _require(self.temperature > 0, f"data.rollout.temperature must be positive, got {self.temperature}")
        _require(
            self.induction_inputs >= 2 and self.induction_inputs % 2 == 0,
            f"data.rollout.induction_inputs must be even and at least 2, got {self.induction_inputs}",
        )

    @property
    def proposals_per_match(self) -> int:
        """Proposals, and so the number of problems, in one match."""
        return len(self.tasks) * self.prompts_per_task * self.group_size


@dataclass(frozen=True)
class EngineConfig:
    """The inference engine that generates for base and members alike."""

    name: str = "vllm"
    """`vllm`, `scripted` (tests), or a dotted path to an engine class."""
    max_model_len: int | None = None
    """Longest prompt plus response in tokens; none: as far as the base goes, at most what a rollout needs."""
    processes: int | None = None
    """Engines that share a batch, each in a process with the whole base; none: one a core on a CPU, at most 4, and
    one on an accelerator."""
    max_sequences: int = 256
    """Sequences each process decodes at once."""
    memory_gib: float = 1.0
    """Key-value cache of a process on a CPU, GiB."""
    gpu_memory_utilization: float = 0.4
    """Share of an accelerator's memory for the engine (weights and key-value cache)."""
    start_timeout: float = 600.0
    """Seconds the engine may take to start."""
    request_timeout: float = 1800.0
    """Seconds one generation may take before the engine counts as hung."""

    def __post_init__(self) -> None:
        _require(
            self.processes is None or self.processes >= 1,
            f"data.engine.processes must be at least 1 or null, got {self.processes}",
        )

    def process_count(self, accelerated: bool) -> int:
        """Return ``processes``, or what stands for none."""
        return self.processes or (1 if accelerated else min(cores(), 4))


@dataclass(frozen=True)
class VerifierConfig:
    """Limits of the sandbox that runs programs."""

    workers: int | None = None
    """Sandbox processes; none: one per core."""
    cpu_seconds: float = 1.0
    """CPU time of one program over all its inputs: decides a timeout."""
    wall_seconds: float = 10.0
    """Wall-clock backstop of one program."""
    memory_mib: int = 512
    """Address space a program may add."""
    max_program_chars: int = 4000
    """Longest program; longer is rejected, never truncated."""
    max_literal_chars: int = 1000
    """Longest input or output literal; longer is rejected, never truncated."""
    banned_modules: list[str] = field(
        default_factory=lambda: [
            "asyncio", "atexit", "builtins", "ctypes", "datetime", "faulthandler", "fcntl", "gc", "importlib",
            "inspect", "io", "logging", "mmap", "multiprocessing", "os", "pathlib", "pickle", "posix", "pty",
            "random", "resource", "secrets", "select", "shutil", "signal", "socket", "subprocess", "sys", "tempfile",
            "threading", "time", "urllib", "uuid", "weakref",
        ]
    )  # fmt: skip
    """Modules a program may not import."""
    unsafe: bool = False
    """Do without seccomp where the kernel has none, rather than refuse to run: only for models you trust."""

    def __post_init__(self) -> None:
        _require(
            self.workers is None or self.workers >= 1,
            f"data.verifier.workers must be at least 1 or null, got {self.workers}",
        )
        _require(self.cpu_seconds > 0, f"data.verifier.cpu_seconds must be positive, got {self.cpu_seconds}")
        _require(
            self.wall_seconds >= self.cpu_seconds,
            f"data.verifier.wall_seconds must be at least cpu_seconds ({self.cpu_seconds}), got {self.wall_seconds}",
        )
        _require(
            self.memory_mib >= 16, f"data.verifier.memory_mib must be at least 16, got {self.memory_mib}"
        )
        _require(
            1 <= self.max_literal_chars <= 4000,
            f"data.verifier.max_literal_chars must be in 1 … 4000, got {self.max_literal_chars}",
        )
