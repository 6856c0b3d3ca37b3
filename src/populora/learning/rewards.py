"""What a response is worth (section 5 of the method; the numbers are the paper's, arXiv 2605.16727).

A truncated response (``finish_reason == "length"``) counts as malformed even where an answer can be read in it: it
earns ``malformed`` or ``invalid`` and stays in the loss, so a member learns to finish. The paper is silent on it.
"""

from populora.config import RewardConfig
from populora.records import Verdict


def proposal_reward(valid: bool, solve_rate: float | None, config: RewardConfig) -> float:
    """Reward a teacher's proposal: 1 − solve rate when valid and solved at least once.

    Args:
        valid: whether the response is a problem that passed the verifier.
        solve_rate: share of the matched student's attempts that are correct, in [0, 1]; ignored when invalid.
        config: the values of the other two cases.

    Raises:
        ValueError: a valid problem comes without a solve rate in [0, 1].
    """
    if not valid:
        return config.invalid
    if solve_rate is None or not 0.0 <= solve_rate <= 1.0:
        raise ValueError(
            f"a valid problem needs a solve rate in [0, 1], got {solve_rate}; let the student attempt it first"
        )
    return 1.0 - solve_rate if solve_rate > 0.0 else config.unsolved


def attempt_reward(verdict: Verdict, config: RewardConfig) -> float:
    """Reward a student's attempt: correct, well-formed but wrong, or malformed."""
    if verdict.correct:
        return config.correct
    return config.wrong if verdict.well_formed else config.malformed
