"""Tables say what was measured, and never average what must not be."""

import json
from dataclasses import replace
from pathlib import Path

from populora.evaluation import report
from populora.evaluation.data import Origin
from populora.evaluation.metrics import Score
from populora.evaluation.results import Results, SuiteResult
from populora.evaluation.suite import Decoding, Group

ACCURACIES = {"base": 0.2, "student-0": 0.1, "student-1": 0.5}


def score(accuracy: float) -> Score:
    return Score(10, 1, accuracy, accuracy - 0.1, accuracy + 0.1, accuracy, 0.25, 0.5, 123.0)


def suite(name: str, group: Group, shift: float = 0.0, complete: bool = True) -> SuiteResult:
    title = name if complete else f"{name} (public tests only)"
    scores = {player: score(accuracy + shift) for player, accuracy in ACCURACIES.items()}
    origin = Origin("folder/file", ("abc",), True)
    return SuiteResult(name, title, group, complete, origin, Decoding(64), scores, 12.0, 3.0)


RESULTS = Results(
    "model",
    "3 iterations",
    (
        suite("a", "code"),
        suite("b", "code", shift=0.2),
        suite("hidden", "code", shift=0.4, complete=False),
        suite("c", "mathematics"),
        suite("d", "execution", shift=0.1),
    ),
    ("e: there is no file",),
)


def cells(table: report.Table, row: str) -> tuple[str, ...]:
    return next(cells[1:] for cells in table.rows if cells[0] == row)


def test_overview_has_base_and_spread_of_members() -> None:
    overview = report.tables(RESULTS)[0]
    assert overview.columns == ("suite", "items", "base", "mean", "worst", "best*")
    assert cells(overview, "a") == ("10", "20.0% [10%, 30%]", "30.0%", "10.0%", "50.0%")
    assert "chosen on the test set" in overview.note


def test_averages_leave_out_what_is_incomplete() -> None:
    overview = report.tables(RESULTS)[0]
    assert cells(overview, "hidden (public tests only)")[2] == "70.0%"
    assert cells(overview, "code average of 2") == ("", "30.0%", "40.0%", "20.0%", "60.0%")
    assert cells(overview, "mathematics average of 1") == ("", "20.0%", "30.0%", "10.0%", "50.0%")
    assert [average.suites for average in RESULTS.averages()] == [("a", "b"), ("c",)]


def test_every_member_has_a_column() -> None:
    members = report.tables(RESULTS)[1]
    assert members.columns == ("suite", "student-0", "student-1")
    assert cells(members, "b") == ("30.0%", "70.0%")


def test_truncated_responses_are_shown() -> None:
    endings = report.tables(RESULTS)[-1]
    shown = dict(zip(endings.columns[1:], cells(endings, "a"), strict=True))
    assert (shown["truncated"], shown["no answer"], shown["tokens"], shown["limit"]) == (
        "25.0%",
        "50.0%",
        "123",
        "64",
    )


def test_a_base_alone_has_no_population() -> None:
    alone = [replace(s, scores={"base": s.scores["base"]}) for s in RESULTS.suites]
    found = report.tables(replace(RESULTS, suites=tuple(alone)))
    assert found[0].columns == ("suite", "items", "base")
    assert len(found) == 2


def test_files_hold_everything(tmp_path: Path) -> None:
    report.write(RESULTS, tmp_path / "new")
    markdown = (tmp_path / "new" / "results.md").read_text()
    assert "| hidden (public tests only) | 10 | 60.0% [50%, 70%] |" in markdown
    assert "not evaluated: e: there is no file" in markdown
    assert "folder/file, sha256 abc" in markdown
    content = json.loads((tmp_path / "new" / "results.json").read_text())
    assert content["suites"][0]["scores"]["student-1"]["accuracy"] == 0.5
    assert content["averages"][0]["suites"] == ["a", "b"]


def test_scalars_are_tagged_by_suite_and_player() -> None:
    scalars = dict(RESULTS.scalars())
    assert scalars["suites/a/student-1"] == 0.5
    assert scalars["suites/a/population_mean"] == 0.3
    assert scalars["suites/code_average/base"] == 0.30000000000000004
    assert "suites/hidden_average/base" not in scalars
