"""What canonical solutions return and how long they take: found once, by running them, and kept in the user's cache."""

import contextlib
import hashlib
import json
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from populora.errors import DataError
from populora.evaluation.code.calls import Times, call_job, results
from populora.evaluation.code.sandbox import CodeSandbox

logger = logging.getLogger(__name__)

_FORMAT = 3
_TIMES = Times(one_call=300, all_calls=600, wall=6000)
_BATCH = 32
"""Solutions that are run before their results are kept."""


@dataclass(frozen=True)
class Reference:
    """A canonical solution and what it is called with."""

    task: str
    program: str
    entry: str
    inputs: tuple[str, ...]
    """Encoded arguments of each call."""

    @property
    def key(self) -> str:
        """Digest of all that its results depend on."""
        content = [_FORMAT, sys.version_info[:2], self.program, self.entry, self.inputs]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()


@dataclass(frozen=True)
class Expected:
    """What a canonical solution returned."""

    texts: tuple[str, ...]
    """One for each call, as :func:`populora.verifier.harness.described` writes it."""
    seconds: tuple[float, ...]
    """CPU time of each call."""


def cache_folder() -> Path:
    """Return where expected results are kept: below ``XDG_CACHE_HOME``, or ``~/.cache``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "populora" / "expected"


def expected(references: Sequence[Reference], sandbox: CodeSandbox) -> list[Expected]:
    """Return what canonical solutions give; what is not in the cache is found by running them.

    Raises:
        DataError: one of them fails.
        VerifierError: the sandbox cannot be started.
    """
    known = {reference.key: _read(reference) for reference in references}
    missing = list({each.key: each for each in references if known[each.key] is None}.values())
    if missing:
        logger.info("running %d canonical solutions for the results they give", len(missing))
    for start in range(0, len(missing), _BATCH):
        known |= _found(missing[start : start + _BATCH], sandbox)
    return [each for reference in references if (each := known[reference.key])]


def _found(references: Sequence[Reference], sandbox: CodeSandbox) -> dict[str, Expected | None]:
    """Run canonical solutions and keep what they give."""
    jobs = [call_job(each.program, each.entry, each.inputs, _TIMES) for each in references]
    found_by_key: dict[str, Expected | None] = {}
    for reference, run in zip(references, sandbox.run(jobs), strict=True):
        found = results(run)
        if found.failure:
            raise DataError(
                f"the canonical solution of {reference.task} fails at input {len(found.texts)} here, with "
                f"{found.failure.category}; the data are damaged, or Python {sys.version.split()[0]} is not theirs"
            )
        found_by_key[reference.key] = Expected(found.texts, found.seconds)
        _write(reference, Expected(found.texts, found.seconds))
    return found_by_key


def _file(reference: Reference) -> Path:
    return cache_folder() / f"{reference.key}.json"


def _read(reference: Reference) -> Expected | None:
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        content = json.loads(_file(reference).read_text())
        found = Expected(tuple(content["texts"]), tuple(content["seconds"]))
        if len(found.texts) == len(found.seconds) == len(reference.inputs):
            return found
    return None


def _write(reference: Reference, found: Expected) -> None:
    path = _file(reference)
    part = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps({"task": reference.task, "texts": found.texts, "seconds": found.seconds}))
        part.replace(path)
    except OSError as error:
        logger.warning("cannot keep expected results in %s: %s", path.parent, error)
