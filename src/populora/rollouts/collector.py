"""One iteration's rollouts: match, propose, validate, solve, grade, reward."""

from collections.abc import Sequence
from dataclasses import dataclass

from populora.config import RewardConfig, RolloutConfig
from populora.learning.rewards import attempt_reward, proposal_reward
from populora.population.matchmaking import match
from populora.population.members import Population
from populora.records import Attempt, Match, Problem, Proposal, RolloutBatch, Timings
from populora.rollouts.proposing import Ask, Proposer, Written
from populora.rollouts.solving import Answer, Question, Sampling, Solver, StageListener
from populora.seeding import derive, stream
from populora.tasks.buffer import ProblemBuffer


@dataclass(frozen=True)
class _Posed:
    match: int
    problem: Problem
    from_buffer: bool


class Collector:
    """Plays one iteration and returns its record; reads population and buffer, changes neither.

    Args:
        seed: Seed of the run; all randomness derives from it, the iteration and the stage.
    """

    def __init__(
        self,
        config: RolloutConfig,
        rewards: RewardConfig,
        proposer: Proposer,
        solver: Solver,
        seed: int,
    ) -> None:
        self._config = config
        self._rewards = rewards
        self._proposer = proposer
        self._solver = solver
        self._seed = seed

    def collect(
        self, iteration: int, population: Population, buffer: ProblemBuffer, listener: StageListener
    ) -> RolloutBatch:
        """Play one iteration."""
        matches = match(population, stream(self._seed, "match", iteration))
        asks = self._proposer.ask(
            [m.teacher.name for m in matches], buffer, stream(self._seed, "references", iteration)
        )
        written = self._proposer.propose(
            asks,
            iteration,
            self._sampling("propose", iteration, self._config.group_size, self._config.max_proposal_tokens),
            listener,
        )
        posed = self._pose(len(matches), asks, written, buffer, iteration)
        answers = self._solver.solve(
            [Question(item.problem, matches[item.match].student.name) for item in posed],
            self._sampling("solve", iteration, self._config.attempts, self._config.max_attempt_tokens),
            listener,
        )
        attempts = self._attempts(matches, posed, answers)
        return RolloutBatch(
            iteration=iteration,
            matches=matches,
            proposals=self._proposals(matches, asks, written, posed, answers),
            attempts=attempts,
            timings=Timings(
                propose=self._proposer.propose_seconds,
                validate=self._proposer.validate_seconds,
                solve=self._solver.solve_seconds,
                grade=self._solver.grade_seconds,
            ),
        )

    def _sampling(self, stage: str, iteration: int, count: int, max_tokens: int) -> Sampling:
        return Sampling(count, max_tokens, self._config.temperature, derive(self._seed, stage, iteration))

    def _pose(
        self,
        matches: int,
        asks: Sequence[Ask],
        written: Sequence[Sequence[Written]],
        buffer: ProblemBuffer,
        iteration: int,
    ) -> list[_Posed]:
        """Put every valid problem to the matched student; fill each task's share from the buffer.

        A match has ``proposals_per_match`` problems whatever its teacher wrote; the paper is silent on matches
        with fewer valid ones.
        """
        rng = stream(self._seed, "fill", iteration)
        posed = [
            _Posed(ask.match, item.validation.problem, from_buffer=False)
            for ask, items in zip(asks, written, strict=True)
            for item in items
            if item.validation.problem is not None
        ]
        share = self._config.prompts_per_task * self._config.group_size
        for index in range(matches):
            for name in self._config.tasks:
                own = sum(item.match == index and item.problem.task == name for item in posed)
                posed += [_Posed(index, p, from_buffer=True) for p in buffer.sample(name, share - own, rng)]
        return posed

    def _attempts(
        self, matches: Sequence[Match], posed: Sequence[_Posed], answers: Sequence[Sequence[Answer]]
    ) -> tuple[Attempt, ...]:
        return tuple(
            Attempt(
                member=matches[item.match].student,
                problem=item.problem,
                match=item.match,
                group=group,
                prompt_ids=answer.prompt_ids,
                completion=answer.completion,
                verdict=answer.verdict,
                reward=attempt_reward(answer.verdict, self._rewards),
                from_buffer=item.from_buffer,
            )
            for group, (item, tries) in enumerate(zip(posed, answers, strict=True))
            for answer in tries
        )

    def _proposals(
        self,
        matches: Sequence[Match],
        asks: Sequence[Ask],
        written: Sequence[Sequence[Written]],
        posed: Sequence[_Posed],
        answers: Sequence[Sequence[Answer]],
    ) -> tuple[Proposal, ...]:
        """Join proposals with their solve rates: the valid ones were posed first, in the order of writing."""
        rates = (sum(answer.verdict.correct for answer in tries) / len(tries) for tries in answers)
        proposals = []
        for group, (ask, items) in enumerate(zip(asks, written, strict=True), start=len(posed)):
            for item in items:
                valid = item.validation.problem is not None
                rate = next(rates) if valid else None
                proposals.append(
                    Proposal(
                        member=matches[ask.match].teacher,
                        task=ask.task,
                        match=ask.match,
                        group=group,
                        prompt_ids=ask.prompt_ids,
                        completion=item.completion,
                        problem=item.validation.problem,
                        failure=item.validation.failure,
                        solve_rate=rate,
                        reward=proposal_reward(valid, rate, self._rewards),
                    )
                )
        return tuple(proposals)
