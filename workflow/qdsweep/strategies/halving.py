"""Which settings go on to the next rung: the best ones so far (Karnin et al. 2013; Jamieson 2016).

With `block: 1` this is ASHA (Li et al. 2020) in the order of the settings instead of arrival, so
that it repeats.
"""

from collections.abc import Sequence

from qdsweep.records.search import Chosen, Decision, Seen, ordinal


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
