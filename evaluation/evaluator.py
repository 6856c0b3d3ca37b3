"""Puts the items of suites to all players at once, keeps what they answer, and grades it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from populora.errors import DataError
from populora.evaluation.metrics import Score, SuiteScore
from populora.evaluation.responses import Asked, Response, ResponseFile
from populora.evaluation.results import SuiteResult
from populora.evaluation.settings import EvaluationSettings
from populora.evaluation.suite import Decoding, Item, Suite
from populora.records import Completion
from populora.rollouts.engine import Engine, GenerationRequest
from populora.seeding import derive
from populora.tasks.prompts import Frame

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Listener = Callable[[str, int, int], None]
"""Called with a stage's name, how much of it is done, and how much there is."""

_BATCH = 1024
"""Responses generated before they are written down."""


@dataclass(frozen=True)
class Player:
    """Who answers: the base, or a member whose adapter the engine holds."""

    name: str
    member: str | None
    """As the engine knows it; None is the base."""
    weights: str
    """What tells its weights from others."""
    folder: Path
    """Where its responses are kept."""


@dataclass(frozen=True)
class _Question:
    """An item for one player."""

    item: Item
    player: Player
    request: GenerationRequest
    prefill: str
    asked: tuple[Asked, ...]
    """One for each sample."""


class Evaluator:
    """Evaluates players with an engine that holds their adapters.

    All players answer a suite's items in the same batches. Responses are written as they come, and those that are
    there already, to the same questions from the same weights, are not generated again.

    Args:
        engine: A started engine.
        tokenizer: The base's.
        chat: Whether the base chats, or only continues text.
        settings: What differs from the suites' protocols.
        listener: Told of progress.
        load_adapters: Gives the engine those of the players' adapters that it does not hold.
    """

    def __init__(
        self,
        engine: Engine,
        tokenizer: "PreTrainedTokenizerBase",
        chat: bool,
        settings: EvaluationSettings,
        listener: Listener,
        load_adapters: Callable[[], None] = lambda: None,
    ) -> None:
        self._engine = engine
        self._load_adapters = load_adapters
        self._frame = Frame(tokenizer, chat)
        self._chat = chat
        self._settings = settings
        self._listener = listener

    def evaluate(self, suite: Suite[Any], players: Sequence[Player]) -> SuiteResult:
        """Return how all players do in a suite.

        Raises:
            DataError: its data are missing, or the file of earlier responses is damaged.
            EngineError: the engine failed twice.
        """
        items, decoding = self._settings.chosen(suite.items()), self._settings.decoding(suite)
        start = time.perf_counter()
        questions = [self._question(suite, decoding, item, player) for item in items for player in players]
        responses = self._answers(suite, questions)
        generated = time.perf_counter()
        graded = graded_responses(suite, items, responses, self._listener)
        for player in players:
            _keep(
                response_file(player.folder, suite.name), [r for r in graded if r.asked.player == player.name]
            )
        return summary(
            suite, decoding, graded, generated - start, time.perf_counter() - generated, limited=len(items)
        )

    def _question(self, suite: Suite[Any], decoding: Decoding, item: Item, player: Player) -> _Question:
        form = suite.form(item, self._chat)
        prompt_ids = tuple(self._frame.encode(form.text, form.prefill))
        room = max(0, self._engine.max_model_len - len(prompt_ids))
        seed = derive("suite", self._settings.seed, suite.name, item.id)
        request = GenerationRequest(
            prompt_ids=prompt_ids,
            member=player.member,
            count=decoding.samples,
            max_tokens=min(decoding.max_tokens, room),
            temperature=decoding.temperature,
            seed=seed,
            stop=form.stop,
        )
        asked = tuple(
            Asked(
                suite=suite.name,
                item=item.id,
                sample=sample,
                player=player.name,
                weights=player.weights,
                prompt=form.text + form.prefill,
                max_tokens=request.max_tokens,
                temperature=request.temperature,
                seed=seed + sample,
            )
            for sample in range(decoding.samples)
        )
        return _Question(item, player, request, form.prefill, asked)

    def _answers(self, suite: Suite[Any], questions: Sequence[_Question]) -> list[Response]:
        """Return a response to everything asked, from the files where they have it."""
        players = dict.fromkeys(question.player for question in questions)
        files = {player: response_file(player.folder, suite.name) for player in players}
        known = {response.asked: response for file in files.values() for response in file.read()}
        open_questions = [q for q in questions if not all(asked in known for asked in q.asked)]
        total = sum(question.request.count for question in questions)
        done = total - sum(question.request.count for question in open_questions)
        per_batch = max(1, _BATCH // max((q.request.count for q in questions), default=1))
        for start in range(0, len(open_questions), per_batch):
            batch = open_questions[start : start + per_batch]
            fresh = self._generate(suite.name, batch, done, total)
            for player, file in files.items():
                file.append(response for response in fresh if response.asked.player == player.name)
            known |= {response.asked: response for response in fresh}
            done += len(fresh)
        return [known[asked] for question in questions for asked in question.asked]

    def _generate(self, stage: str, batch: Sequence[_Question], done: int, total: int) -> list[Response]:
        def advance(now: int, _: int) -> None:
            self._listener(stage, done + now, total)

        def answer() -> list[tuple[Completion, ...]]:
            self._load_adapters()
            return self._engine.generate([question.request for question in batch], advance)

        self._listener(stage, done, total)
        answered = self._engine.retry(answer)
        return [
            _response(question, sample, completion)
            for question, completions in zip(batch, answered, strict=True)
            for sample, completion in enumerate(completions)
        ]


def _response(question: _Question, sample: int, completion: Completion) -> Response:
    return Response(
        asked=question.asked[sample],
        text=question.prefill + completion.text,
        tokens=len(completion.token_ids),
        finish_reason=completion.finish_reason,
    )


def response_file(folder: Path, suite: str) -> ResponseFile:
    """Return where the responses of a player to a suite are kept."""
    return ResponseFile(folder / f"{suite}.jsonl")


def _keep(file: ResponseFile, graded: Sequence[Response]) -> None:
    """Write grades into a file, which may hold responses to other questions too."""
    known = {response.asked: response for response in file.read()}
    file.replace([*(known | {response.asked: response for response in graded}).values()])


def graded_responses(
    suite: Suite[Any], items: Sequence[Item], responses: Sequence[Response], listener: Listener
) -> list[Response]:
    """Return the responses with their grades.

    Raises:
        DataError: a response is to an item that there is not.
    """
    by_id = {item.id: item for item in items}
    unknown = {response.asked.item for response in responses} - by_id.keys()
    if unknown:
        raise DataError(
            f"{suite.name}: there are responses to items its data do not have: {sorted(unknown)[:3]}"
        )
    listener(f"grade {suite.name}", 0, len(responses))
    grades = suite.grade([(by_id[response.asked.item], response.text) for response in responses])
    listener(f"grade {suite.name}", len(responses), len(responses))
    return [replace(response, grade=grade) for response, grade in zip(responses, grades, strict=True)]


def summary(
    suite: Suite[Any],
    decoding: Decoding,
    graded: Sequence[Response],
    generate_seconds: float,
    grade_seconds: float,
    limited: int,
) -> SuiteResult:
    """Return what graded responses add up to.

    Args:
        suite: The suite, its items read.
        decoding: How the responses were sampled.
        graded: All responses of all players.
        generate_seconds: Time spent generating.
        grade_seconds: Time spent grading.
        limited: Number of items evaluated.
    """
    by_player: dict[str, list[Response]] = {}
    for response in graded:
        by_player.setdefault(response.asked.player, []).append(response)
    whole = len(suite.items())
    notes = [suite.caveat, f"{limited:,} of {whole:,} items" if limited < whole else ""]
    noted = ", ".join(filter(None, notes))
    return SuiteResult(
        name=suite.name,
        title=f"{suite.title} ({noted})" if noted else suite.title,
        group=suite.group,
        complete=not suite.caveat,
        origin=suite.origin,
        decoding=decoding,
        scores={player: _score(own) for player, own in by_player.items()},
        generate_seconds=generate_seconds,
        grade_seconds=grade_seconds,
    )


def _score(responses: Sequence[Response]) -> Score:
    by_item: dict[str, list[Response]] = {}
    for response in responses:
        by_item.setdefault(response.asked.item, []).append(response)
    metric = SuiteScore()
    for own in by_item.values():
        grades = [response.grade for response in own if response.grade is not None]
        metric.update(
            right=sum(grade.correct for grade in grades),
            truncated=sum(response.truncated for response in own),
            unanswered=sum(not grade.answer for grade in grades),
            tokens=sum(response.tokens for response in own),
            samples=len(own),
        )
    return metric.score()
