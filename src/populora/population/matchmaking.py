"""Who meets whom: prioritised fictitious self-play."""

import random

from populora.population.members import Population
from populora.records import Match


def match(population: Population, rng: random.Random) -> tuple[Match, ...]:
    """Pair every teacher with a student it is neither sure to beat nor sure to lose to.

    Teachers come in random order and draw a student without replacement (the pool refills when empty)
    with weight p(1 − p), where p is the student's chance to win: the variance weighting of prioritised
    fictitious self-play (Vinyals et al., 2019). A shared agent meets itself.

    Args:
        population: Members and ratings; not changed.
        rng: Source of all randomness.

    Returns:
        One match a teacher, in the order in which they drew.
    """
    matches = []
    pool = list(population.students)
    for teacher in rng.sample(population.teachers, len(population.teachers)):
        chances = [population.ratings.win_probability(s.name, teacher.name) for s in pool]
        index = rng.choices(range(len(pool)), [p * (1 - p) for p in chances])[0]
        matches.append(Match(teacher, pool.pop(index), chances[index]))
        pool = pool or list(population.students)
    return tuple(matches)
