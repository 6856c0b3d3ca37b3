"""The exception tree.

PopuLoRAError
├── ConfigError        a setting is wrong or two settings contradict each other
├── EngineError        the inference engine cannot start, died, or answered wrongly
│   └── AdapterSyncError   the engine does not hold the adapter it was given
├── LearningError      a member's numbers went wrong for too long
├── VerifierError      the sandbox itself failed (a failing program is data, not an error)
├── DataError          a benchmark's data are missing or damaged
└── CheckpointError    a checkpoint cannot be written, read, or does not fit this run
"""


class PopuLoRAError(Exception):
    """Base of every error this package raises on purpose."""


class ConfigError(PopuLoRAError, ValueError):
    """A setting is wrong; the message names the key, what was expected and what came."""


class EngineError(PopuLoRAError, RuntimeError):
    """The inference engine cannot start, died, or answered wrongly."""


class AdapterSyncError(EngineError):
    """The engine does not hold the adapter version it was given."""


class LearningError(PopuLoRAError, RuntimeError):
    """A member's loss, gradient or engine mismatch went wrong for too many steps."""


class VerifierError(PopuLoRAError, RuntimeError):
    """The sandbox itself failed; a failing program is an outcome, never this error."""


class DataError(PopuLoRAError, RuntimeError):
    """A benchmark's data are missing or damaged; the message says where they were looked for."""


class CheckpointError(PopuLoRAError, RuntimeError):
    """A checkpoint cannot be written or read, or does not fit this run."""
