"""When bad steps end a run."""

import json
import math
from dataclasses import replace

import pytest

from populora.config import LearningConfig
from populora.errors import ConfigError, LearningError
from populora.learning.health import Health
from populora.records import Member, MemberUpdate, Role, Update

ONE, OTHER = Member("student-0", Role.STUDENT), Member("student-1", Role.STUDENT)


def _step(member: Member = ONE, loss: float = 0.1, norm: float = 1.0, mismatch: float = 0.01) -> MemberUpdate:
    return MemberUpdate(member, math.isfinite(loss), 4, 40, 0.0, loss, norm, 1.0, 0.0, mismatch)


def _update(*steps: MemberUpdate) -> Update:
    return Update(steps, 100, 100)


BAD = [_step(loss=math.nan), _step(norm=math.inf), _step(mismatch=0.6), _step(mismatch=math.inf)]


@pytest.fixture
def health() -> Health:
    return Health(LearningConfig(bad_steps=3, mismatch_limit=0.5))


@pytest.mark.parametrize("bad", BAD)
def test_the_third_bad_step_in_a_row_ends_the_run(health: Health, bad: MemberUpdate) -> None:
    health.check(_update(bad, _step(OTHER)))
    health.check(_update(bad, _step(OTHER)))
    with pytest.raises(LearningError, match=r"student-0: .* in 3 steps in a row"):
        health.check(_update(bad, _step(OTHER)))


def test_a_good_step_in_between_starts_the_count_anew(health: Health) -> None:
    for _ in range(5):
        for step in (BAD[0], BAD[2], _step()):
            health.check(_update(step))


def test_members_are_counted_apart_and_a_child_anew(health: Health) -> None:
    child = replace(ONE, born=7)
    for member in (ONE, OTHER, child):
        for _ in range(2):
            health.check(_update(_step(member, loss=math.nan)))


def test_flat_members_without_tokens_are_healthy(health: Health) -> None:
    flat = replace(_step(loss=0.0, norm=0.0), stepped=False, mismatch=math.nan)
    for _ in range(9):
        health.check(_update(flat))


def test_counts_go_on_after_a_resume(health: Health) -> None:
    health.check(_update(BAD[0], _step(OTHER)))
    health.check(_update(BAD[0], _step(OTHER)))
    restored = Health(LearningConfig(bad_steps=3))
    restored.load_state_dict(json.loads(json.dumps(health.state_dict())))
    with pytest.raises(LearningError, match="gradient norm"):
        restored.check(_update(BAD[0]))


@pytest.mark.parametrize("settings", [{"bad_steps": 0}, {"mismatch_limit": 0.0}])
def test_limits_out_of_bounds_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(settings))):
        LearningConfig(**settings)  # type: ignore[arg-type]
