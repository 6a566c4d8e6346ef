"""Runs a search in memory, with the decisions of a sweep: on a table of curves or any function."""

from collections.abc import Callable, Mapping, Sequence

from qdsweep.records.search_files import Chosen, Decision, Level, Seen
from qdsweep.search.levels import promote
from qdsweep.search.tpe import Ask, Values

# Candidate, its values, seed, budget -> score, larger is better; None where it failed.
Score = Callable[[int, Values, str, int], float | None]


def walk(
    levels: Sequence[Level], known: Sequence[Values], score: Score, ask: Ask | None = None
) -> dict[str, list[Seen]]:
    """Runs a search.

    Args:
        levels: Of `qdsweep.search.levels.levels`.
        known: The values of the candidates that are known beforehand.
        score: Gives a candidate's score after so much of the budget.
        ask: Gives the values of levels that are asked for.

    Returns:
        Level -> what was seen of its candidates, in the order of its places.
    """
    by_name = {level.name: level for level in levels}
    seen: dict[str, list[Seen]] = {}
    for level in levels:
        chosen = _chosen(level, known, seen, by_name, ask)
        seen[level.name] = [_seen(candidate, level, score) for candidate in chosen]
    return seen


def _chosen(
    level: Level,
    known: Sequence[Values],
    seen: Mapping[str, list[Seen]],
    by_name: Mapping[str, Level],
    ask: Ask | None,
) -> list[Chosen]:
    if level.kind == "promoted":
        below = seen[level.below[0]]
        decision = Decision([], [])
        for block in range(level.blocks):
            first, last, upto = level.sees(block, len(below))
            decision = promote(below[first:last], decision, upto)
        return decision.chosen
    if level.kind == "asked":
        assert ask is not None, "no function to ask"
        candidates = ask([(by_name[name], seen[name]) for name in level.below], level)
    else:
        candidates = known[level.first : level.first + level.places]
    return [
        Chosen(place, level.first + place, values, level.kind)
        for place, values in enumerate(candidates)
    ]


def _seen(candidate: Chosen, level: Level, score: Score) -> Seen:
    place, number, values, *_ = candidate
    scores = [score(number, values, seed, level.budget) for seed in level.seeds]
    known = [each for each in scores if each is not None]
    mean = sum(known) / len(known) if len(known) == len(scores) else None
    return Seen(place, number, values, mean, None if mean is not None else "it failed")


def cost(levels: Sequence[Level], seen: Mapping[str, Sequence[Seen]]) -> int:
    """Returns the budget that a walk has used, if runs continue from their last budget."""
    reached: dict[tuple[int, str], int] = {}
    for level in levels:
        for candidate in seen[level.name]:
            for seed in level.seeds:
                key = (candidate.setting, seed)
                reached[key] = max(reached.get(key, 0), level.budget)
    return sum(reached.values())
