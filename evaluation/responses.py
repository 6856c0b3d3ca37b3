"""What players answered, kept in files: grading again needs no model, and a run broken off goes on."""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from populora.errors import DataError
from populora.evaluation.suite import Grade


@dataclass(frozen=True)
class Asked:
    """What a response depends on; equal questions have equal answers."""

    suite: str
    item: str
    sample: int
    """Counts from 0."""
    player: str
    """``base`` or a member's name."""
    weights: str
    """Digest of the player's adapter, or the base's folder."""
    prompt: str
    """With the beginning of the response, where that was given."""
    max_tokens: int
    temperature: float
    seed: int


@dataclass(frozen=True)
class Response:
    """One response and its grade."""

    asked: Asked
    text: str
    """With its beginning, where that was given."""
    tokens: int
    finish_reason: str
    """``stop``, or ``length`` where it was cut off."""
    grade: Grade | None = None
    """None until it is graded."""

    @property
    def truncated(self) -> bool:
        """Whether it was cut off at the token limit."""
        return self.finish_reason == "length"


class ResponseFile:
    """The responses of one suite, a JSON object a line, in order of generation.

    Args:
        path: The file; made with its folder when the first responses come.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> list[Response]:
        """Return all responses so far; a last line broken off in writing is left out.

        Raises:
            DataError: another line is no response.
        """
        if not self._path.is_file():
            return []
        lines = self._path.read_text(encoding="utf-8").split("\n")
        whole, rest = lines[:-1], lines[-1]
        if rest:
            self._path.write_text("".join(f"{line}\n" for line in whole), encoding="utf-8")
        try:
            return [_from_record(json.loads(line)) for line in whole]
        except (ValueError, TypeError, KeyError) as error:
            raise DataError(
                f"{self._path} is not a file of responses: {error!r}. Move it away, or evaluate into another folder"
            ) from error

    def append(self, responses: Iterable[Response]) -> None:
        """Add responses."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write("".join(_to_line(response) for response in responses))

    def replace(self, responses: Sequence[Response]) -> None:
        """Write these responses in place of all."""
        new = self._path.with_suffix(".new")
        new.write_text("".join(map(_to_line, responses)), encoding="utf-8")
        os.replace(new, self._path)


def _to_line(response: Response) -> str:
    record = asdict(response)
    grade = record.pop("grade") or {}
    flat = record.pop("asked") | record | {field.name: grade.get(field.name) for field in fields(Grade)}
    return json.dumps(flat) + "\n"


def _from_record(record: dict[str, object]) -> Response:
    def part(kind: type) -> dict[str, object]:
        return {field.name: record[field.name] for field in fields(kind)}

    asked = Asked(**part(Asked))  # type: ignore[arg-type]
    grade = None if record["correct"] is None else Grade(**part(Grade))  # type: ignore[arg-type]
    response = Response(asked, *(record[name] for name in ("text", "tokens", "finish_reason")))  # type: ignore[arg-type]
    return replace(response, grade=grade)
