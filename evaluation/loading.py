"""Suites by name, with their data read before anything is generated."""

from collections.abc import Sequence
from typing import Any

from populora.errors import ConfigError, DataError
from populora.evaluation import suites as _all  # noqa: F401  (registers them)
from populora.evaluation.data import DataSource
from populora.evaluation.settings import EvaluationSettings
from populora.evaluation.suite import Suite, suites


def load_suites(
    names: Sequence[str], source: DataSource, settings: EvaluationSettings, skip_missing: bool
) -> tuple[list[Suite[Any]], list[str]]:
    """Return the suites, and what is said of those whose data are missing.

    Args:
        names: Suites' names; ``all`` for every one.
        source: Where data are looked for.
        settings: What differs from the suites' protocols.
        skip_missing: Go on without suites whose data are missing.

    Raises:
        ConfigError: there is no such suite, or it cannot be sampled as the settings say.
        DataError: data are missing and may not be, or nothing is left.
    """
    wanted = list(suites) if list(names) == ["all"] else list(dict.fromkeys(names))
    if not wanted:
        raise ConfigError(f"name at least one suite, or all; there are {', '.join(suites)}")
    kinds = [suites[name] for name in wanted]
    found: list[Suite[Any]] = []
    missing: list[str] = []
    for kind in kinds:
        suite = kind(source)
        settings.decoding(suite)
        try:
            suite.items()
        except DataError as error:
            if not skip_missing:
                raise
            missing.append(str(error))
        else:
            found.append(suite)
    if not found:
        raise DataError("no suite's data were found:\n" + "\n".join(missing))
    return found, missing
