"""A word about silence."""

import logging
import threading
import time

import pytest

from populora.watchdog import Watchdog


def _wait_for(text: str, caplog: pytest.LogCaptureFixture, count: int = 1) -> None:
    deadline = time.monotonic() + 20
    while caplog.text.count(text) < count and time.monotonic() < deadline:
        time.sleep(0.01)


def test_silence_is_named_again_and_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    watchdog = Watchdog(patience=0.05)
    watchdog.start("the engine's start")
    watchdog.note("solve (3 of 40) in iteration 2")
    _wait_for("Waiting for: solve (3 of 40) in iteration 2", caplog, count=2)
    watchdog.stop()
    assert caplog.text.count("Waiting for: solve (3 of 40) in iteration 2") >= 2


def test_nothing_is_said_while_things_move(caplog: pytest.LogCaptureFixture) -> None:
    watchdog = Watchdog(patience=30.0)
    watchdog.start("start")
    watchdog.note("solve")
    watchdog.stop()
    watchdog.stop()
    assert not caplog.text
    assert "watchdog" not in {thread.name for thread in threading.enumerate()}
