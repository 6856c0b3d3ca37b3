"""Comparisons run in processes, and one that goes wrong costs nothing but itself."""

import sys
from collections.abc import Iterator

import pytest

from populora.errors import VerifierError
from populora.evaluation.mathematics import workers
from populora.evaluation.mathematics.workers import Comparer, Pair

FAKE = r"""
import json, os, resource, sys
print("ready", flush=True)
for line in sys.stdin:
    gold, answer, tolerance = json.loads(line)
    if answer == "spin":
        resource.setrlimit(resource.RLIMIT_CPU, (1, 2))
        while True:
            pass
    if answer == "die":
        os._exit(3)
    if answer == "error":
        print('"SyntaxError"', flush=True)
    else:
        print(json.dumps(gold == answer), flush=True)
"""


@pytest.fixture
def comparer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Comparer]:
    real = workers.subprocess.Popen

    def start(command: list[str], **options: object) -> object:
        assert command[1:] == ["-m", "populora.evaluation.mathematics.worker"]
        return real([sys.executable, "-c", FAKE], **options)

    monkeypatch.setattr(workers.subprocess, "Popen", start)
    comparer = Comparer(workers=2)
    yield comparer
    comparer.close()


def test_verdicts_come_in_the_order_of_the_pairs(comparer: Comparer) -> None:
    answers = [str(number % 3) for number in range(50)]
    assert [c.equal for c in comparer([Pair("1", answer) for answer in answers])] == [
        a == "1" for a in answers
    ]


def test_what_hangs_or_dies_fails_alone(comparer: Comparer) -> None:
    answers = ["1", "spin", "1", "die", "error", "2", "1"]
    found = comparer([Pair("1", answer) for answer in answers])
    assert [c.equal for c in found] == [True, False, True, False, False, False, True]
    assert found[1].failure.startswith("timeout")
    assert found[3].failure == "the comparison crashed"
    assert found[4].failure == "unreadable: SyntaxError"
    assert [c.failure for c in found[5:]] == ["", ""]


def test_no_process_is_left(comparer: Comparer) -> None:
    comparer([Pair("1", "1")])
    process = comparer._workers[0]._process or comparer._workers[1]._process
    assert process is not None
    comparer.close()
    assert process.poll() is not None
    comparer.close()
    assert comparer([Pair("1", "1")])[0].equal


def test_a_worker_that_does_not_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    real = workers.subprocess.Popen
    monkeypatch.setattr(
        workers.subprocess, "Popen", lambda command, **options: real([sys.executable, "-c", ""], **options)
    )
    with pytest.raises(VerifierError, match="math-verify"):
        Comparer(workers=1)([Pair("1", "1")])


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["10^{10^{10^{10}}}", "99999999!", "x^{" * 300, "\\frac{" * 400])
def test_real_bombs_are_wrong(answer: str) -> None:
    comparer = Comparer(workers=1)
    bomb, after = comparer([Pair("\\sqrt{2}", answer), Pair("\\sqrt{8}", "2\\sqrt{2}")])
    comparer.close()
    assert not bomb.equal
    assert after.equal
