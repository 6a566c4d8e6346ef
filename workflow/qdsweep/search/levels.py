"""The levels of a search, which are known before their candidates.

The module also computes the cost of a search, in the unit of its budgets. The
next rung has the best candidates so far (Karnin et al. 2013; Jamieson 2016).

With `block: 1` this is ASHA (Li et al. 2020) in the order of the candidates instead of their
arrival, so that it is reproducible.
"""

import math
from collections.abc import Iterator, Sequence

from qdsweep.config.search import Halving, Search
from qdsweep.errors import BadInput
from qdsweep.records.search import Decision, Level, Seen, ordinal
from qdsweep.text import plural


def levels(
    search: Search, candidates: int, seeds: Sequence[str], budget: int, *, drawn: bool = True
) -> tuple[Level, ...]:
    """Returns the levels of a search, in an order in which they can be computed.

    Args:
        search: How the budget is spent.
        candidates: Number of candidates whose values are known beforehand.
        seeds: The swept seeds as text; `("",)` where none is swept.
        budget: Of a whole run, in the experiment's unit.
        drawn: Whether candidates are drawn, so that more of them may follow.

    Raises:
        BadInput: The budget or the seeds do not suffice for its rungs.
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
    """Returns how many candidates are drawn beforehand; 0 where the sweep is a grid."""
    if search.pbt is not None:
        return search.pbt.population
    is_tpe = search.sampling == "tpe"
    if search.halving is not None and search.has_brackets:
        rounds = 1 if is_tpe else search.batches
        return rounds * sum(size for _, size in bracket_sizes(search.halving))
    return (search.samples or 0) // (search.batches if is_tpe else 1)


def bracket_sizes(halving: Halving) -> list[tuple[int, int]]:
    """Returns how many rungs each bracket has, and how many candidates begin it.

    Source: Li et al. (2018), Hyperband, algorithm 1; bracket s has s + 1 rungs.
    """
    most = len(halving.shares)
    rungs = range(most, most - halving.num_brackets, -1)
    return [(count, math.ceil(most * halving.eta ** (count - 1) / count)) for count in rungs]


def rung_seeds(halving: Halving, seeds: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns the seeds of each rung: the first ones of those that are swept."""
    count = len(halving.shares)
    numbers = halving.seeds or [max(1, len(seeds) * (i + 1) // count) for i in range(count)]
    if numbers[-1] > len(seeds):
        raise BadInput(
            f"search: halving.seeds = {halving.seeds}: the sweep has "
            f"{plural(len(seeds), 'seed')}; write them into it, such as ::: seed "
            f"{' '.join(str(seed + 1) for seed in range(numbers[-1]))}"
        )
    return [tuple(seeds[:number]) for number in numbers]


def _block(search: Search, halving: Halving, *, drawn: bool) -> int:
    """Returns how many places a decision is about; 0 for all places of a level."""
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
    """Returns the rungs of one halving: the `count` last ones, or all for 0."""
    shares = halving.shares[-count:]
    budgets = [max(1, round(share * budget)) for share in shares]
    if len(set(budgets)) < len(budgets):
        raise BadInput(
            f"search: halving: the rungs {', '.join(map(str, shares))} of a budget of {budget} are "
            f"{', '.join(map(str, budgets))}: give the experiment a larger budget, or fewer rungs"
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
    """Returns rungs whose first candidates are asked for, if there were levels before."""
    if not below:
        return rungs
    return [rungs[0]._replace(kind="asked", below=below), *rungs[1:]]


def _generations(search: Search, seeds: Sequence[str], budget: int) -> Iterator[Level]:
    """Yields the generations of population-based training."""
    assert search.pbt is not None
    count = search.pbt.generations
    if budget < count:
        raise BadInput(f"search: pbt.generations = {count}: the budget is {budget} alone")
    below: tuple[str, ...] = ()
    for number in range(count):
        name, kind = f"generation-{number}", "exploited" if below else "known"
        amount = budget * (number + 1) // count
        yield Level(name, search.pbt.population, tuple(seeds), amount, kind, 0, below)
        below = (name,)


GO_ON = ("promoted", "exploited")
"""Kinds of levels that continue runs of the level below."""


def cost(levels: Sequence[Level], level: Level) -> int:
    """Returns what a level adds, as its runs continue those of the level below."""
    inherited = 0
    if level.kind in GO_ON:
        (below,) = (other for other in levels if other.name == level.below[0])
        inherited = below.budget * len(set(level.seeds) & set(below.seeds))
    return level.places * (len(level.seeds) * level.budget - inherited)


def whole_budget(levels: Sequence[Level]) -> int:
    """Returns the budget of a whole run: the largest of the levels."""
    return max(level.budget for level in levels)


def count_candidates(levels: Sequence[Level]) -> int:
    """Returns how many candidates a search has, with those that are proposed during the search."""
    return sum(level.places for level in levels if level.kind not in GO_ON)


def search_cost(levels: Sequence[Level]) -> int:
    """Returns what a search computes in all, in the unit of its budgets."""
    return sum(cost(levels, level) for level in levels)


def share_of_whole(levels: Sequence[Level], candidates: int) -> float:
    """Returns that cost as a share of this many whole runs with one seed."""
    return search_cost(levels) / (candidates * whole_budget(levels))


def promote(new: Sequence[Seen], before: Decision, upto: int) -> Decision:
    """Returns a decision that promotes the best candidates of all that were seen.

    Args:
        new: The candidates that this decision is the first to see.
        before: The decisions before it: the candidates that they saw and chose.
        upto: How many candidates are promoted after it.
    """
    seen = [*before.seen, *new]
    order = ranked(seen)
    chosen = list(before.chosen)
    taken = {promoted.setting for promoted in chosen}
    for rank, candidate in enumerate(order, start=1):
        if len(chosen) < upto and candidate.setting not in taken:
            reason = f"{ordinal(rank)} of {len(order)}"
            chosen.append(candidate.chosen_for(len(chosen), reason))
    return Decision(seen, chosen)


def ranked(seen: Sequence[Seen]) -> list[Seen]:
    """Returns candidates with the best first, and those that failed last."""
    return sorted(seen, key=lambda item: (item.score is None, -(item.score or 0.0), item.place))
