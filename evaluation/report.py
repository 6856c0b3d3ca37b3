"""Results as tables, on a terminal and in a Markdown file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import rich
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table as RichTable

from populora.evaluation.metrics import Score
from populora.evaluation.results import BASE, Results, SuiteResult, spread

_PLAYERS_A_TABLE = 8


@dataclass(frozen=True)
class Table:
    """Cells under headings."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def markdown(self) -> str:
        """Return it as Markdown."""
        lines = [self.columns, ("---", *["---:"] * (len(self.columns) - 1)), *self.rows]
        table = "\n".join(
            f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines
        )
        return "\n\n".join(filter(None, [f"### {self.title}", table, self.note])) + "\n"

    def rich(self) -> RichTable:
        """Return it for a terminal."""
        table = RichTable(
            title=self.title, caption=self.note or None, box=SIMPLE_HEAD, padding=(0, 1, 0, 0),
            title_justify="left", caption_justify="left",
        )  # fmt: skip
        table.add_column(self.columns[0])
        for column in self.columns[1:]:
            table.add_column(column, justify="right")
        for row in self.rows:
            table.add_row(*map(escape, row))
        return table


def tables(results: Results) -> list[Table]:
    """Return the tables of an evaluation: the population, every member, and how responses ended."""
    members = [player for player in results.players if player != BASE]
    found = [_overview(results, bool(members))]
    for start in range(0, len(members), _PLAYERS_A_TABLE):
        found.append(_players(results, members[start : start + _PLAYERS_A_TABLE]))
    return [*found, _endings(results)]


def show(results: Results) -> None:
    """Print the tables."""
    console = rich.get_console()
    for table in tables(results):
        console.print(table.rich())
    for line in results.missing:
        console.print(f"not evaluated: {line}", soft_wrap=True, markup=False, highlight=False)


def write(results: Results, folder: Path, name: str = "results") -> None:
    """Write the tables as Markdown and everything as JSON."""
    results.write(folder / f"{name}.json")
    text = "\n".join(
        [f"## {results.model}: {results.label}\n", *(table.markdown() for table in tables(results))]
    )
    missing = "".join(f"- not evaluated: {line}\n" for line in results.missing)
    data = "".join(
        f"- {s.name}: {s.origin.source}, sha256 {', '.join(s.origin.sha256)}\n" for s in results.suites
    )
    (folder / f"{name}.md").write_text(f"{text}\n{missing}{data}", encoding="utf-8")


def _overview(results: Results, population: bool) -> Table:
    columns = ["suite", "items", "base", *(["mean", "worst", "best*"] if population else [])]
    rows = [
        (
            suite.title,
            f"{_any(suite).items:,}",
            _with_interval(suite.scores.get(BASE)),
            *_spread([score.accuracy for score in suite.members], population),
        )
        for suite in results.suites
    ]
    rows += [
        (
            f"{average.title} of {len(average.suites)}",
            "",
            f"{average.accuracies[BASE]:.1%}" if BASE in average.accuracies else "",
            *_spread([a for player, a in average.accuracies.items() if player != BASE], population),
        )
        for average in results.averages()
    ]
    note = "Accuracy [95 % bootstrap interval over items]."
    best = " *best: chosen on the test set, so it promises too much." if population else ""
    return Table(f"{results.model}, {results.label}", tuple(columns), tuple(rows), note + best)


def _players(results: Results, members: Sequence[str]) -> Table:
    rows = [
        (suite.title, *(_percent(suite.scores.get(member)) for member in members)) for suite in results.suites
    ]
    rows += [
        (f"{average.title} of {len(average.suites)}", *(f"{average.accuracies[m]:.1%}" for m in members))
        for average in results.averages()
    ]
    return Table("Members", ("suite", *members), tuple(rows))


def _endings(results: Results) -> Table:
    columns = (
        "suite",
        "samples",
        "pass@k",
        "truncated",
        "no answer",
        "tokens",
        "limit",
        "generated",
        "graded",
    )
    rows = []
    for suite in results.suites:
        scores = list(suite.scores.values())
        rows.append(
            (
                suite.title,
                f"{_any(suite).samples}",
                f"{_mean([s.passed for s in scores]):.1%}" if _any(suite).samples > 1 else "",
                f"{_mean([s.truncated for s in scores]):.1%}",
                f"{_mean([s.unanswered for s in scores]):.1%}",
                f"{_mean([s.tokens for s in scores]):,.0f}",
                f"{suite.decoding.max_tokens:,}",
                f"{suite.generate_seconds:,.0f} s",
                f"{suite.grade_seconds:,.0f} s",
            )
        )
    return Table(
        "Responses", columns, tuple(rows), "Means over all players; limit: of a response, in tokens."
    )


def _any(suite: SuiteResult) -> Score:
    return next(iter(suite.scores.values()))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _percent(score: Score | None) -> str:
    return "" if score is None else f"{score.accuracy:.1%}"


def _with_interval(score: Score | None) -> str:
    return "" if score is None else f"{score.accuracy:.1%} [{score.low:.0%}, {score.high:.0%}]"


def _spread(accuracies: Sequence[float], population: bool) -> list[str]:
    found = spread(accuracies)
    if found is None:
        return ["", "", ""] if population else []
    return [f"{value:.1%}" for value in (found.mean, found.worst, found.best)]
