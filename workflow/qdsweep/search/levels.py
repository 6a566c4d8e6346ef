"""The levels of a search and their cost, which are known before their candidates.

The cost is in the unit of the budgets. The next rung of a halving has the best candidates so far
(Karnin et al. 2013; Jamieson and Talwalkar 2016).

With `block: 1` this is ASHA (Li et al. 2020), but in the order of the candidates instead of their
arrival, so it is reproducible.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from qdsweep.config.search import Halving, Search
from qdsweep.errors import BadInput
from qdsweep.records.search_files import Decision, Level, Seen, ordinal
from qdsweep.text import plural

GO_ON = ("promoted", "exploited")
"""Kinds of levels that continue runs of the level below."""


def levels(
    search: Search, candidates: int, seeds: Sequence[str], budget: int, *, drawn: bool = True
) -> tuple[Level, ...]:
    """Returns the levels of a search, in an order in which they can be computed.

    Args:
        search: The settings of the search.
        candidates: Number of candidates whose values are known beforehand.
        seeds: The swept seeds as text; `("",)` if none is swept.
        budget: The budget of a whole run, in the experiment's unit.
        drawn: Whether candidates are drawn, so that more candidates may follow.

    Raises:
        BadInput: The budget or the seeds do not suffice for the rungs.
    """
    if search.pbt is not None:
        return tuple(_generations(search, seeds, budget))
    if search.has_brackets:
        return tuple(_brackets(search, seeds, budget))
    planned: list[Level] = []
    samples = samples_of(search) if search.sampling == "tpe" else candidates
    for batch in range(search.batches):
        prefix = f"batch-{batch}-" if search.batches > 1 else ""
        below = tuple(level.name for level in planned)
        first = batch * samples
        if search.halving is None:
            rungs = [Level(prefix.rstrip("-"), samples, tuple(seeds), budget, first=first)]
        else:
            block = _block(search, search.halving, drawn=drawn)
            rungs = _rungs(search.halving, samples, seeds, budget, prefix, first, block)
        planned += _asked(rungs, below)
    return tuple(planned)


def samples_of(search: Search) -> int:
    """Returns the number of candidates that are drawn beforehand; 0 if the sweep is a grid."""
    if search.pbt is not None:
        return search.pbt.population
    is_tpe = search.sampling == "tpe"
    if search.halving is not None and search.has_brackets:
        rounds = 1 if is_tpe else search.batches
        return rounds * sum(size for _, size in bracket_sizes(search.halving))
    return (search.samples or 0) // (search.batches if is_tpe else 1)


def bracket_sizes(halving: Halving) -> list[tuple[int, int]]:
    """Returns the numbers of rungs and of first candidates of each bracket.

    Source: Li et al. (2018), Hyperband, algorithm 1. Bracket s has s + 1 rungs.
    """
    most = len(halving.shares)
    rungs = range(most, most - halving.num_brackets, -1)
    return [(count, math.ceil(most * halving.eta ** (count - 1) / count)) for count in rungs]


def rung_seeds(halving: Halving, seeds: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns the seeds of each rung, which are the first of the swept seeds."""
    count = len(halving.shares)
    numbers = halving.seeds or [max(1, len(seeds) * (i + 1) // count) for i in range(count)]
    if numbers[-1] > len(seeds):
        raise BadInput(
            f"search: halving.seeds = {halving.seeds}, but the sweep has "
            f"{plural(len(seeds), 'seed')}. Write more seeds into it, such as ::: seed "
            f"{' '.join(str(seed + 1) for seed in range(numbers[-1]))}"
        )
    return [tuple(seeds[:number]) for number in numbers]


def _block(search: Search, halving: Halving, *, drawn: bool) -> int:
    """Returns the number of places per decision; 0 for all places of a level."""
    if halving.block is None:
        return halving.eta if drawn and search.sampling not in ("tpe", "lhs") else 0
    return 0 if halving.block == "all" else halving.block


def _brackets(search: Search, seeds: Sequence[str], budget: int) -> Iterator[Level]:
    """Yields the levels of Hyperband's brackets, round after round."""
    assert search.halving is not None
    halving, first = search.halving, 0
    block = 0 if halving.block in (None, "all") else int(halving.block)
    below: tuple[str, ...] = ()
    for batch in range(search.batches):
        prefix = f"batch-{batch}-" if search.batches > 1 else ""
        planned: list[Level] = []
        for count, size in bracket_sizes(halving):
            name = f"{prefix}bracket-{count - 1}-"
            rungs = _rungs(halving, size, seeds, budget, name, first, block, count)
            planned += _asked(rungs, below) if search.sampling == "tpe" else rungs
            first += size
        yield from planned
        below = (*below, *(level.name for level in planned))


def _rungs(
    halving: Halving,
    candidates: int,
    seeds: Sequence[str],
    budget: int,
    prefix: str,
    first: int,
    block: int,
    count: int = 0,
) -> list[Level]:
    """Returns the last `count` rungs of one halving, or all rungs if `count` is 0."""
    shares = halving.shares[-count:]
    budgets = [max(1, round(share * budget)) for share in shares]
    if len(set(budgets)) < len(budgets):
        raise BadInput(
            f"search: halving: the rungs {', '.join(map(str, shares))} of a budget of {budget} are "
            f"{', '.join(map(str, budgets))}. Give the experiment a larger budget, or fewer rungs"
        )
    swept = rung_seeds(halving, seeds)[-count:]
    rungs: list[Level] = []
    for number, (amount, own) in enumerate(zip(budgets, swept, strict=True)):
        size = max(1, candidates // halving.eta**number)
        level = Level(f"{prefix}rung-{number}", size, own, amount, first=first)
        if rungs:
            below = (rungs[-1].name,)
            level = level._replace(kind="promoted", first=0, below=below, block=block)
        rungs.append(level)
    return rungs


def _asked(rungs: list[Level], below: tuple[str, ...]) -> list[Level]:
    """Returns the rungs. If there are levels before, the first candidates are proposed."""
    if not below:
        return rungs
    return [rungs[0]._replace(kind="asked", below=below), *rungs[1:]]


def _generations(search: Search, seeds: Sequence[str], budget: int) -> Iterator[Level]:
    """Yields the generations of population-based training."""
    assert search.pbt is not None
    count = search.pbt.generations
    if budget < count:
        raise BadInput(f"search: pbt.generations = {count}, but the budget is {budget}")
    below: tuple[str, ...] = ()
    for number in range(count):
        name, kind = f"generation-{number}", "exploited" if below else "known"
        amount = budget * (number + 1) // count
        yield Level(name, search.pbt.population, tuple(seeds), amount, kind, 0, below)
        below = (name,)


def cost(levels: Sequence[Level], level: Level) -> int:
    """Returns the cost that a level adds. Its runs continue those of the level below."""
    inherited = 0
    if level.kind in GO_ON:
        (below,) = (other for other in levels if other.name == level.below[0])
        inherited = below.budget * len(set(level.seeds) & set(below.seeds))
    return level.places * (len(level.seeds) * level.budget - inherited)


def whole_budget(levels: Sequence[Level]) -> int:
    """Returns the budget of a whole run, which is the largest of the levels."""
    return max(level.budget for level in levels)


def count_candidates(levels: Sequence[Level]) -> int:
    """Returns the number of candidates of a search, including those proposed during the search."""
    return sum(level.places for level in levels if level.kind not in GO_ON)


def count_finalists(levels: Sequence[Level]) -> int:
    """Returns the number of candidates that a search computes whole."""
    most = whole_budget(levels)
    return sum(level.places for level in levels if level.budget == most)


def search_cost(levels: Sequence[Level]) -> int:
    """Returns the total cost of a search, in the unit of its budgets."""
    return sum(cost(levels, level) for level in levels)


def share_of_whole(levels: Sequence[Level], candidates: int) -> float:
    """Returns the total cost as a fraction of this many whole runs with one seed."""
    return search_cost(levels) / (candidates * whole_budget(levels))


def promote(new: Sequence[Seen], before: Decision, upto: int) -> Decision:
    """Returns a decision that promotes the best of all candidates so far.

    Args:
        new: The results that earlier decisions did not have.
        before: The earlier decisions, with the candidates that they saw and chose.
        upto: The number of promoted candidates after this decision.
    """
    seen = [*before.seen, *new]
    order = ranked(seen)
    chosen = list(before.chosen)
    taken = {promoted.setting for promoted in chosen}
    scores = Counter(item.score for item in order)
    for rank, candidate in enumerate(order, start=1):
        if len(chosen) < upto and candidate.setting not in taken:
            reason = f"{ordinal(rank)} of {len(order)}"
            if candidate.score is not None and scores[candidate.score] > 1:  # the place decides
                reason += f", {scores[candidate.score]} of them with this score"
            chosen.append(candidate.chosen_for(len(chosen), reason))
    return Decision(seen, chosen)


def ranked(seen: Sequence[Seen]) -> list[Seen]:
    """Returns candidates with the best first and the failed ones last."""
    return sorted(seen, key=lambda item: (item.score is None, -(item.score or 0.0), item.place))
