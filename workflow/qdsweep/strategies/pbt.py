"""Population-based training: the worst take over the state of the best, with other values.

Truncation selection of Jaderberg et al. (2017), Population based training of neural networks. All
members of a generation are ranked together, at equal budgets, so that nothing depends on who was
quicker; every draw has a stream of its own, by the search's seed, generation, place and name.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from qdsweep.config.schedule import schedule_text
from qdsweep.config.search import Search
from qdsweep.config.values import typed
from qdsweep.records.search import Chosen, Decision, Seen, ordinal
from qdsweep.strategies.draws import uniform
from qdsweep.strategies.halving import ranked
from qdsweep.sweep.drawn import Drawn
from qdsweep.sweep.groups import CHANGES

# How often other values are tried for a member, before it stays as it is.
_TRIES = 100


def exploit(
    search: Search, sources: Sequence[Drawn], seen: Sequence[Seen], generation: int, at: int
) -> Decision:
    """Returns the next generation.

    Of each that takes over, `parent` is its donor's place, `values` has the values from now on, and
    `CHANGES` in it those before: `0 sigma=0.5; 900 sigma=0.4`. No two of them are the same
    experiment.

    Args:
        search: With its key `pbt`.
        sources: The drawn sources.
        seen: The generation before, all places.
        generation: The number of the next one, from 1.
        at: After which iteration it begins.
    """
    assert search.pbt is not None
    order = ranked(seen)
    count = max(1, int(search.pbt.exploit * len(order)))
    donors = [one for one in order[:count] if one.score is not None]
    best = {one.place for one in donors}
    replaced = {one.place for one in order[-count:]}
    replaced |= {one.place for one in order if one.score is None}
    chosen, taken = [], {(one.setting, _text(sources, one.values)) for one in seen}
    for rank, one in enumerate(order, start=1):
        stands = f"{ordinal(rank)} of {len(order)}"
        about = one.setting, one.values, stands, one.place, one.failed, one.runs
        stays = Chosen(one.place, *about)
        if not donors or one.place in best or one.place not in replaced:
            chosen.append(stays)
            continue
        for number in range(_TRIES):
            stream = f"{generation} {one.place} {number}"
            donor = donors[int(uniform(search.seed, f"donor {stream}", 0) * len(donors))]
            values = _explored(search, sources, donor.values, stream)
            if (donor.setting, _text(sources, values)) not in taken:
                taken.add((donor.setting, _text(sources, values)))
                setting = generation * len(order) + one.place
                values[CHANGES] = _history(sources, donor.values, values, at)
                reason = f"{stands}: takes over place {donor.place}"
                chosen.append(Chosen(one.place, setting, values, reason, donor.place))
                break
        else:  # there is nothing else to try
            chosen.append(stays)
    return Decision(list(seen), sorted(chosen, key=lambda one: one.place))


def change_of(sources: Sequence[Drawn], values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values that a member has from now on, by swept name."""
    return {source.name: values[source.name] for source in sources}


def _explored(
    search: Search, sources: Sequence[Drawn], values: Mapping[str, Any], stream: str
) -> dict[str, Any]:
    """Returns values near those of a donor, or drawn anew."""
    assert search.pbt is not None
    found = dict(values)
    for source in sources:
        anew, which, where = (
            uniform(search.seed, f"{source.name} {stream}", number) for number in range(3)
        )
        if anew < search.pbt.resample:
            found[source.name] = typed(source.value(where))
        else:
            factor = search.pbt.factors[int(which * len(search.pbt.factors))]
            found[source.name] = typed(source.scaled(values[source.name], factor))
    return found


def _text(sources: Sequence[Drawn], values: Mapping[str, Any]) -> str:
    return schedule_text([(0, change_of(sources, values))])


def _history(
    sources: Sequence[Drawn], before: Mapping[str, Any], now: Mapping[str, Any], at: int
) -> str:
    """Returns the values of a lineage: `0` for the start, then after which iteration they came."""
    earlier = str(before.get(CHANGES) or _text(sources, before))
    return f"{earlier}; {schedule_text([(at, change_of(sources, now))])}"
