"""The levels of a search: what it computes, known before it is known of which settings.

What a search costs by its plan, in the unit of its budgets.

Which settings go on to the next rung: the best ones so far (Karnin et al. 2013; Jamieson 2016).

With `block: 1` this is ASHA (Li et al. 2020) in the order of the settings instead of arrival, so
that it repeats.
"""

import math
from collections.abc import Iterator, Sequence

from qdsweep.config.search import Halving, Search
from qdsweep.errors import BadInput
from qdsweep.records.search import Chosen, Decision, Level, Seen, ordinal


def levels(
    search: Search, settings: int, seeds: Sequence[str], budget: int, *, drawn: bool = True
) -> tuple[Level, ...]:
    """Returns the levels of a search, in an order in which they can be computed.

    Args:
        search: How the budget is spent.
        settings: Number of settings whose values are known beforehand.
        seeds: The swept seeds as text; `("",)` where none is swept.
        budget: Of a whole run, in the experiment's unit.
        drawn: Whether settings are drawn, so that more of them may follow.

    Raises:
        BadInput: The budget or the seeds do not suffice for its rungs.
    """
    if search.pbt is not None:
        return tuple(_generations(search, seeds, budget))
    if search.halving is not None and search.halving.num_brackets > 1:
        return tuple(_brackets(search, search.halving, seeds, budget))
    found: list[Level] = []
    each = (search.samples or 0) // search.batches if search.sampling == "tpe" else settings
    for batch in range(search.batches):
        prefix = f"batch-{batch}-" if search.batches > 1 else ""
        below = tuple(level.name for level in found)
        first = batch * each
        if search.halving is None:
            rungs = [Level(prefix.rstrip("-"), each, tuple(seeds), budget, first=first)]
        else:
            block = _block(search, search.halving, drawn=drawn)
            sizes = [max(1, each // search.halving.eta**i) for i in range(_num(search.halving))]
            rungs = _rungs(search.halving, sizes, seeds, budget, prefix, first, block)
        found += _asked(rungs, below)
    return tuple(found)


def samples_of(search: Search) -> int:
    """Returns how many settings are drawn beforehand; 0 where the sweep is a grid."""
    if search.pbt is not None:
        return search.pbt.population
    halving = search.halving
    if halving is not None and halving.num_brackets > 1:
        rounds = 1 if search.sampling == "tpe" else search.batches
        return rounds * sum(size for _, size in bracket_sizes(halving))
    return (search.samples or 0) // (search.batches if search.sampling == "tpe" else 1)


def bracket_sizes(halving: Halving) -> list[tuple[int, int]]:
    """Returns the brackets: of each the number of its first rung, and how many settings begin.

    Source: Li et al. (2018), Hyperband, algorithm 1; bracket s has s + 1 rungs.
    """
    most = _num(halving) - 1
    found = []
    for skipped in range(halving.num_brackets):
        s = most - skipped
        found.append((skipped, math.ceil((most + 1) * halving.eta**s / (s + 1))))
    return found


def rung_seeds(halving: Halving, seeds: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns the seeds of each rung: the first ones of those that are swept."""
    count = _num(halving)
    numbers = halving.seeds or [max(1, len(seeds) * (i + 1) // count) for i in range(count)]
    if numbers[-1] > len(seeds):
        raise BadInput(
            f"search: halving.seeds = {halving.seeds}: the sweep has {len(seeds)} "
            f"seed{'' if len(seeds) == 1 else 's'}; write them into it, such as ::: seed "
            f"{' '.join(str(seed + 1) for seed in range(numbers[-1]))}"
        )
    return [tuple(seeds[:number]) for number in numbers]


def _num(halving: Halving) -> int:
    return len(halving.shares)


def _block(search: Search, halving: Halving, *, drawn: bool) -> int:
    """The places of a decision; 0 for all of a level."""
    if halving.block is None:
        return halving.eta if drawn and search.sampling not in ("tpe", "lhs") else 0
    return 0 if halving.block == "all" else halving.block


def _brackets(
    search: Search, halving: Halving, seeds: Sequence[str], budget: int
) -> Iterator[Level]:
    """Yields the levels of Hyperband's brackets, round after round."""
    first = 0
    below: tuple[str, ...] = ()
    for batch in range(search.batches):
        prefix = f"batch-{batch}-" if search.batches > 1 else ""
        found: list[Level] = []
        for skipped, size in bracket_sizes(halving):
            name = f"{prefix}bracket-{_num(halving) - 1 - skipped}-"
            sizes = [max(1, size // halving.eta**i) for i in range(_num(halving) - skipped)]
            block = 0 if halving.block in (None, "all") else int(halving.block)
            rungs = _rungs(halving, sizes, seeds, budget, name, first, block)
            found += _asked(rungs, below) if search.sampling == "tpe" else rungs
            first += size
        yield from found
        below = (*below, *(level.name for level in found))


def _rungs(
    halving: Halving,
    sizes: Sequence[int],
    seeds: Sequence[str],
    budget: int,
    prefix: str,
    first: int,
    block: int,
) -> list[Level]:
    """Returns the rungs of one halving, those of so many last shares of the budget."""
    shares = halving.shares[-len(sizes) :]
    budgets = [max(1, round(share * budget)) for share in shares]
    if len(set(budgets)) < len(budgets):
        raise BadInput(
            f"search: halving: the rungs {', '.join(map(str, shares))} of a budget of {budget} are "
            f"{', '.join(map(str, budgets))}: give the experiment a larger budget, or fewer rungs"
        )
    swept = rung_seeds(halving, seeds)[-len(sizes) :]
    found: list[Level] = []
    for number, (size, amount, own) in enumerate(zip(sizes, budgets, swept, strict=True)):
        name = f"{prefix}rung-{number}"
        if not found:
            found.append(Level(name, size, own, amount, first=first))
        else:
            below = (found[-1].name,)
            found.append(Level(name, size, own, amount, "promoted", 0, below, block))
    return found


def _asked(rungs: list[Level], below: tuple[str, ...]) -> list[Level]:
    """Returns the levels with the first one asked for, if there were levels before."""
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
"""Kinds of levels that go on with runs of the level below."""


def cost(levels: Sequence[Level], level: Level) -> int:
    """Returns what a level adds, as its runs go on from where they stood at the level below."""
    below = {one.name: one for one in levels}
    old = 0
    if level.kind in GO_ON:
        before = below[level.below[0]]
        old = before.budget * len(set(level.seeds) & set(before.seeds))
    return level.places * (len(level.seeds) * level.budget - old)


def whole_budget(levels: Sequence[Level]) -> int:
    """Returns the budget of a whole run: the largest of the levels."""
    return max(level.budget for level in levels)


def settings_count(levels: Sequence[Level]) -> int:
    """Returns how many settings a search begins with, those that are asked for on the way too."""
    return sum(level.places for level in levels if level.kind not in GO_ON)


def search_cost(levels: Sequence[Level]) -> int:
    """Returns what a search computes in all, in the unit of its budgets."""
    return sum(cost(levels, level) for level in levels)


def share_of_whole(levels: Sequence[Level], settings: int) -> float:
    """Returns that as a share of running so many settings whole, with one seed."""
    return search_cost(levels) / (settings * whole_budget(levels))


def promote(new: Sequence[Seen], before: Decision, upto: int) -> Decision:
    """Returns a decision that lets the best of all that was seen go on.

    Args:
        new: The settings that this decision sees first.
        before: What the decisions before it saw and chose.
        upto: How many settings have gone on after it.
    """
    seen = [*before.seen, *new]
    taken = {one.setting for one in before.chosen}
    order = ranked(seen)
    left = [(rank, one) for rank, one in enumerate(order, start=1) if one.setting not in taken]
    chosen = list(before.chosen)
    for rank, one in left[: upto - len(chosen)]:
        reason = f"{ordinal(rank)} of {len(order)}"
        about = one.setting, one.values, reason, one.place, one.failed, one.runs
        chosen.append(Chosen(len(chosen), *about))
    return Decision(seen, chosen)


def ranked(seen: Sequence[Seen]) -> list[Seen]:
    """Returns settings with the best first, and those that failed last."""
    return sorted(seen, key=lambda one: (one.score is None, -(one.score or 0.0), one.place))
