"""Whether the numbers of the gradient steps can be trusted."""

from collections.abc import Mapping

from populora.config import LearningConfig
from populora.errors import LearningError
from populora.records import MemberUpdate, Update


class Health:
    """Counts each member's bad steps in a row, and ends the run when they are too many.

    A bad step is one whose loss or gradient is not finite, which was skipped, or one on responses that the engine
    sampled from another policy than the trainer's.
    """

    def __init__(self, config: LearningConfig) -> None:
        self._config = config
        self._bad: dict[str, int] = {}

    def check(self, update: Update) -> None:
        """Count a step of all members.

        Raises:
            LearningError: a member has had ``bad_steps`` of them in a row.
        """
        for step in update.members:
            bad = not step.finite or step.mismatch > self._config.mismatch_limit
            line = f"{step.member.name} {step.member.born}"
            self._bad[line] = self._bad.get(line, 0) + 1 if bad else 0
            if self._bad[line] >= self._config.bad_steps:
                raise LearningError(_diagnosis(step, self._config))

    def state_dict(self) -> dict[str, int]:
        """Return the present counts that are not zero."""
        return {line: count for line, count in self._bad.items() if count}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Take over what :meth:`state_dict` returned."""
        self._bad = dict(state)


def _diagnosis(step: MemberUpdate, config: LearningConfig) -> str:
    if step.finite:
        return (
            f"{step.member.name}: trainer and engine log-probabilities differ by {step.mismatch:.3g} on average, more "
            f"than {config.mismatch_limit:.3g}, in {config.bad_steps} steps in a row. It learns from responses of "
            "another policy: check that both use the same model.base.dtype and data.rollout.temperature, and that the "
            "engine serves this base right. model.learning.mismatch_limit sets the limit"
        )
    return (
        f"{step.member.name}: loss {step.loss:g} and gradient norm {step.gradient_norm:g} in {config.bad_steps} steps "
        f"in a row, all skipped; its weights are those of version {step.member.version}. Lower "
        "model.learning.learning_rate or max_gradient_norm, or set model.base.dtype to float32, and go on from an "
        "earlier checkpoint"
    )
