"""Canonical solutions run once; what they gave is kept, for the very same solution and inputs."""

import json

import pytest

from populora.errors import DataError
from populora.evaluation.code.calls import encoded
from populora.evaluation.code.expected import Expected, Reference, cache_folder, expected
from populora.evaluation.code.sandbox import CodeSandbox

DOUBLE = Reference("Toy/1", "def g(x):\n    return x * 2", "g", (encoded([2]), encoded(["ab"])))


class NoSandbox(CodeSandbox):
    """Refuses to run anything."""

    def run(self, jobs):
        assert not jobs
        return []


@pytest.fixture(scope="module")
def sandbox():
    with_processes = CodeSandbox()
    yield with_processes
    with_processes.close()


def test_results_are_found_by_running_and_then_kept(sandbox):
    (found,) = expected([DOUBLE], sandbox)
    assert found.texts == ("=4", "='abab'")
    assert len(found.seconds) == 2
    assert expected([DOUBLE, DOUBLE], NoSandbox()) == [found, found]


def test_the_same_solution_runs_once(sandbox, monkeypatch):
    jobs = []
    run = sandbox.run
    monkeypatch.setattr(sandbox, "run", lambda batch: jobs.extend(batch) or run(batch))
    first, second = expected([DOUBLE, DOUBLE], sandbox)
    assert first == second
    assert len(jobs) == 1


@pytest.mark.parametrize(
    "other",
    [
        Reference("Toy/1", "def g(x):\n    return x * 3", "g", DOUBLE.inputs),
        Reference("Toy/1", DOUBLE.program, "lambda x: [g(x)]", DOUBLE.inputs),
        Reference("Toy/1", DOUBLE.program, "g", DOUBLE.inputs[::-1]),
    ],
)
def test_another_solution_entry_or_input_is_found_anew(sandbox, other):
    (first,), (second,) = expected([DOUBLE], sandbox), expected([other], sandbox)
    assert first.texts != second.texts


@pytest.mark.parametrize("content", ["", "[]", "{", json.dumps({"texts": ["=4"], "seconds": [0.0]}), "\x00"])
def test_a_damaged_file_is_replaced(sandbox, content):
    (found,) = expected([DOUBLE], sandbox)
    (file,) = cache_folder().iterdir()
    file.write_text(content)
    assert expected([DOUBLE], sandbox)[0].texts == found.texts
    assert (
        Expected(**{k: tuple(v) for k, v in json.loads(file.read_text()).items() if k != "task"}).texts
        == found.texts
    )


def test_a_folder_that_cannot_be_written_is_no_obstacle(sandbox, tmp_path, monkeypatch, caplog):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert expected([DOUBLE], sandbox)[0].texts == ("=4", "='abab'")
    assert "cannot keep" in caplog.text


def test_a_canonical_solution_that_fails_is_an_error_that_names_it(sandbox):
    broken = Reference("Toy/2", "def g(x):\n    return 1 // x", "g", (encoded([1]), encoded([0])))
    with pytest.raises(DataError, match=r"Toy/2 fails at input 1 .*ZeroDivisionError"):
        expected([broken], sandbox)
