from pathlib import Path

import pytest

from populora.cli.arguments import Override, read_command
from populora.errors import ConfigError


@pytest.mark.parametrize(
    "line",
    [
        "fit --config a.yaml --model.adapter.rank 8 --dry_run",
        "fit -c a.yaml --model.adapter.rank=8 --dry-run",
        "--config a.yaml fit --dry_run --model.adapter.rank 8",
        "--model.adapter.rank 8 --dry_run --config=a.yaml fit",
    ],
)
def test_order_and_spelling_do_not_matter(line: str) -> None:
    command = read_command(line.split())
    assert command.subcommand == "fit"
    assert command.configs == [Path("a.yaml")]
    assert command.overrides == [Override("model.adapter.rank", "8")]
    assert command.switches == {"--dry_run"}


def test_values_keep_what_they_are_made_of() -> None:
    command = read_command(["fit", "--a=b=c", "--x.y", "-1", "--z", "", "--list", "[1, 2]"])
    assert [(o.key, o.text) for o in command.overrides] == [
        ("a", "b=c"),
        ("x.y", "-1"),
        ("z", ""),
        ("list", "[1, 2]"),
    ]


def test_several_configs_keep_their_order() -> None:
    command = read_command(["fit", "--config", "a.yaml", "--x", "1", "--config", "b.yaml"])
    assert command.configs == [Path("a.yaml"), Path("b.yaml")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", "expected a command, fit or validate"),
        ("--config a.yaml", "expected a command, fit or validate"),
        ("fti", "unknown command 'fti', expected fit, validate or doctor; did you mean fit?"),
        ("fit extra", "unexpected 'extra'"),
        ("fit --config", "--config needs a value"),
        ("fit --dry_rum", "did you mean --dry_run?"),
        ("fit --model.population.shared --config a.yaml", "--model.population.shared needs a value"),
    ],
)
def test_mistakes_are_named(line: str, expected: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_command(line.split())
    assert expected in str(error.value)
