"""TPE in batches: new settings where earlier ones were good, by Optuna.

A batch is a pure function of what was recorded before it: the sampler starts anew each time, is
told the recorded settings in the order of their numbers, and asked for one setting after another.
So the same records give the same batch after any kill, and on any number of cores.

Each source is modelled on the scale of its own quantiles, in which every distribution is uniform,
and a choice by its values. The model is of the largest budget that has enough settings (BOHB).

Sources: Bergstra et al. (2011), Algorithms for hyper-parameter optimization; Watanabe (2023),
arXiv:2304.11127; Falkner et al. (2018), BOHB.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count, islice

from qdsweep.config.values import typed, value_text
from qdsweep.errors import BadInput
from qdsweep.records.search import Level, Seen
from qdsweep.strategies.draws import random_row
from qdsweep.strategies.study import Row, Told, asked, is_score, spelled, study_of
from qdsweep.strategies.walk import Ask, Values
from qdsweep.sweep.drawn import Drawn

# How often a setting is asked for that is not there yet, then how often one is drawn.
_ASKED = 50
_DRAWN = 10_000


# The levels so far, each with what was seen of its settings.
Looks = Sequence[tuple[Level, Sequence[Seen]]]


def asker(sources: Sequence[Drawn], seed: int, fits: Callable[[Row], bool] | None = None) -> Ask:
    """Returns the function that proposes the settings of a level.

    Args:
        sources: The drawn sources.
        seed: Of the search.
        fits: Whether a setting may be proposed; those that are there are never proposed again.
    """

    def ask(seen: Looks, level: Level) -> list[Values]:
        told = [Told(_row(sources, one.values), one.score) for one in to_tell(sources, seen)]
        taken = {_row(sources, one.values) for _, settings in seen for one in settings}

        def may(row: Row) -> bool:
            return spelled(row) not in taken and (fits is None or fits(row))

        # Brackets side by side are asked for together, each takes its part: they share no setting.
        first = 1 + max(one.setting for _, settings in seen for one in settings)
        before = level.first - first
        proposed = propose(sources, told, seed, first, before + level.places, may)
        names = [source.name for source in sources]
        return [dict(zip(names, map(typed, row), strict=True)) for row in proposed[before:]]

    return ask


def to_tell(sources: Sequence[Drawn], seen: Looks) -> list[Seen]:
    """Returns the settings of the largest budget that has enough of them for a model.

    Enough are three more than there are sources (BOHB's N_min + 2), one of which has not failed.

    Args:
        sources: The drawn sources; one that has a single value does not count.
        seen: What was seen of the levels so far.

    Returns:
        The settings in the order of their numbers; none where no budget has enough.
    """
    by_budget: dict[int, dict[int, Seen]] = {}
    for level, settings in seen:
        by_budget.setdefault(level.budget, {}).update((one.setting, one) for one in settings)
    enough = 3 + sum(source.kind != "choice" or len(source.arguments) > 1 for source in sources)
    for _, found in sorted(by_budget.items(), reverse=True):
        if len(found) >= enough and any(is_score(one.score) for one in found.values()):
            return [one for _, one in sorted(found.items())]
    return []


def propose(
    sources: Sequence[Drawn],
    told: Sequence[Told],
    seed: int,
    first: int,
    places: int,
    may: Callable[[Row], bool],
) -> list[Row]:
    """Returns new settings: a pure function of its arguments.

    Args:
        sources: The drawn sources.
        told: Settings that are there, in the order of their numbers; one that failed counts as the
            worst. None: the new ones are drawn at random.
        seed: Of the search.
        first: The number of the first new setting.
        places: How many.
        may: Whether a row may be proposed; none is proposed twice.

    Raises:
        BadInput: There are not so many settings.
    """
    study = study_of(sources, told, (seed, first)) if told else None
    found: list[Row] = []
    drawn = (random_row(sources, seed, number) for number in count(first))
    for number in range(first, first + places):
        model = islice(asked(study, sources), _ASKED) if study else ()
        row = _first_new(chain(model, islice(drawn, _DRAWN)), found, may)
        if row is None:
            raise BadInput(
                f"search: setting {number} would be one that is there already, or that cannot be "
                "computed: the drawn sources have too few values; write fewer samples or batches"
            )
        found.append(row)
    return found


def count_settings(sources: Sequence[Drawn], enough: int) -> int:
    """Returns how many different settings there are, at most `enough`."""
    return sum(1 for _ in islice(_settings(sources, {}), enough))


def _settings(sources: Sequence[Drawn], row: dict[str, str]) -> Iterator[dict[str, str]]:
    if not sources:
        yield row
        return
    first, *others = sources
    values = (first.every() or map(str, count())) if first.holds(row) else ("",)
    for value in values:
        yield from _settings(others, {**row, first.name: value})


def _first_new(rows: Iterable[Row], found: Sequence[Row], may: Callable[[Row], bool]) -> Row | None:
    return next((row for row in rows if may(row) and row not in found), None)


def _row(sources: Sequence[Drawn], values: Values) -> Row:
    return tuple(value_text(values.get(source.name, "")) for source in sources)
