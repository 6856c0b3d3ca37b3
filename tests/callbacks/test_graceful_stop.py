"""Signals, in this very process."""

import signal
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from populora.callbacks import GracefulStop

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    former = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in former.items():
        signal.signal(number, handler)


@pytest.fixture
def trainer() -> Any:
    return SimpleNamespace(should_stop=False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_ends_the_run_softly_and_the_second_at_once(
    trainer: Any, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    stop = GracefulStop()
    stop.on_train_start(trainer, trainer)
    signal.raise_signal(number)
    assert trainer.should_stop
    assert "finishing this iteration, then saving" in caplog.text
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)


@pytest.mark.parametrize("end", ["teardown", "on_exception"])
def test_the_former_handlers_come_back(trainer: Any, end: str) -> None:
    former = [signal.getsignal(number) for number in SIGNALS]
    stop = GracefulStop()
    stop.on_train_start(trainer, trainer)
    assert [signal.getsignal(number) for number in SIGNALS[:2]] != former[:2]
    getattr(stop, end)(trainer, trainer, None)
    assert [signal.getsignal(number) for number in SIGNALS] == former


def test_requeueing_waits_for_the_end_of_the_iteration(trainer: Any) -> None:
    requeued: list[int] = []
    signal.signal(signal.SIGUSR1, lambda number, frame: requeued.append(number))
    stop = GracefulStop()
    stop.on_train_start(trainer, trainer)
    signal.raise_signal(signal.SIGUSR1)
    assert trainer.should_stop
    assert requeued == []
    stop.on_train_end(trainer, trainer)
    assert requeued == [signal.SIGUSR1]


def test_a_signal_that_means_nothing_here_is_left_alone(trainer: Any) -> None:
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    stop = GracefulStop()
    stop.on_train_start(trainer, trainer)
    assert signal.getsignal(signal.SIGUSR1) == signal.SIG_IGN
