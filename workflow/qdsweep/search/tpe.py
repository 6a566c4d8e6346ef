"""TPE in batches: new settings where earlier ones were good, by Optuna.

A batch is a pure function of what was recorded before it: the sampler starts anew each time, is
told the recorded settings in the order of their numbers, and asked for one setting after another.
So the same records give the same batch after any kill, and on any number of cores.

Each source is modelled on the scale of its own quantiles, in which every distribution is uniform,
and a choice by its values. The model is of the largest budget that has enough settings (BOHB).

Sources: Bergstra et al. (2011), Algorithms for hyper-parameter optimization; Watanabe (2023),
arXiv:2304.11127; Falkner et al. (2018), BOHB.

Recorded settings as a study of Optuna, for what it proposes and what it finds important.

Each source stands on the scale of its own quantiles, in [0, 1], where its distribution is uniform;
a choice stands as the place of its value. A source whose condition does not hold is not there.

A search in memory, by the decisions of a sweep: on a table of curves, or any function.
"""

import hashlib
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from qdsweep.config.base import typed, value_text
from qdsweep.errors import BadInput
from qdsweep.records.search import Chosen, Decision, Level, Seen
from qdsweep.search.draws import random_row
from qdsweep.search.levels import promote
from qdsweep.sweep.drawn import SAMPLE, Drawn
from qdsweep.sweep.grammar import drawn_in

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution


Row = tuple[str, ...]


class Told(NamedTuple):
    """A setting that has been computed.

    Attributes:
        row: A value for each source, as written; empty where its condition does not hold.
        score: Larger is better; None where the setting failed.
    """

    row: Row
    score: float | None


def is_score(score: float | None) -> TypeGuard[float]:
    """Returns whether a model can use a score: whether the setting did not fail."""
    return score is not None and math.isfinite(score)


def swept_sources(
    sweep: str, settings: Sequence[Mapping[str, Any]], directory: Path = Path()
) -> list[Drawn]:
    """Returns what was swept but the seed: drawn sources as they are, other ones as choices.

    Args:
        sweep: The text of the sweep.
        settings: The values of each setting.
        directory: Where the files of `::::` sources are looked for.
    """
    drawn = {source.name: source for source in drawn_in(sweep, directory)}
    names = [name for name in settings[0] if name not in (SAMPLE, "seed")]
    return [
        drawn.get(name)
        or Drawn(name, "choice", tuple(dict.fromkeys(value_text(one[name]) for one in settings)))
        for name in names
    ]


def study_of(
    sources: Sequence[Drawn], told: Sequence[Told], seeds: tuple[int, int] = (0, 0)
) -> "Study":
    """Returns a study of settings, larger is better, where one that failed is the worst.

    Args:
        sources: What was swept.
        told: The settings, at least one of which has not failed.
        seeds: Of its sampler: the search's, and the number of the first setting to ask for.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    digest = hashlib.sha256("{} {}".format(*seeds).encode()).digest()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `group` has been called experimental since 2021
        sampler = optuna.samplers.TPESampler(
            seed=int.from_bytes(digest[:4], "big"),
            n_startup_trials=1,
            multivariate=True,
            group=True,  # sources of one condition together
            constant_liar=True,  # the settings of a batch keep apart
        )
    study = optuna.create_study(direction="maximize", sampler=sampler, study_name="search")
    worst = min(one.score for one in told if is_score(one.score))
    for one in told:
        row = dict(zip([source.name for source in sources], one.row, strict=True))
        held = [source for source in sources if source.holds(row)]
        trial = optuna.trial.create_trial(
            params={source.name: _place(source, row[source.name]) for source in held},
            distributions={source.name: _distribution(source) for source in held},
            value=one.score if is_score(one.score) else worst,
        )
        study.add_trial(trial)
    return study


def asked(study: "Study", sources: Sequence[Drawn]) -> Iterator[Row]:
    """Yields settings that a study proposes; each knows of those before it."""
    while True:
        trial = study.ask()
        row: dict[str, str] = {}
        for source in sources:
            row[source.name] = ""
            if source.holds(row):
                place = trial._suggest(source.name, _distribution(source))
                is_choice = source.kind == "choice"
                row[source.name] = source.arguments[place] if is_choice else source.value(place)
        yield tuple(row.values())


def spelled(values: Sequence[str]) -> Row:
    """Returns values in one spelling: `1e-3` as 0.001."""
    return tuple(value_text(typed(value)) for value in values)


def _distribution(source: Drawn) -> "BaseDistribution":
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    if source.kind == "choice":
        return CategoricalDistribution(range(len(source.arguments)))
    return FloatDistribution(0, 1)


def _place(source: Drawn, text: str) -> float | int:
    if source.kind == "choice":
        (value,) = spelled([text])
        return spelled(source.arguments).index(value)
    return min(max(source.quantile(text), 0.0), 1.0)


Values = Mapping[str, Any]
# Setting, its values, seed, budget -> score, larger is better; None where it failed.
Score = Callable[[int, Values, str, int], float | None]
# What was seen of all levels below -> values of so many new settings.
Ask = Callable[[Sequence[tuple[Level, Sequence[Seen]]], Level], Sequence[Values]]


def walk(
    levels: Sequence[Level], known: Sequence[Values], score: Score, ask: Ask | None = None
) -> dict[str, list[Seen]]:
    """Runs a search.

    Args:
        levels: Of `strategies.levels.levels`.
        known: The values of the settings that are known beforehand.
        score: Gives a setting's score after so much of the budget.
        ask: Gives the values of levels that are asked for.

    Returns:
        Level -> what was seen of its settings, in the order of its places.
    """
    by_name = {level.name: level for level in levels}
    seen: dict[str, list[Seen]] = {}
    for level in levels:
        chosen = _chosen(level, known, seen, by_name, ask)
        seen[level.name] = [_look(one, level, score) for one in chosen]
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
        assert ask is not None, "nobody to ask"
        found = ask([(by_name[name], seen[name]) for name in level.below], level)
    else:
        found = known[level.first : level.first + level.places]
    return [
        Chosen(place, level.first + place, values, level.kind) for place, values in enumerate(found)
    ]


def _look(one: Chosen, level: Level, score: Score) -> Seen:
    scores = [score(one.setting, one.values, seed, level.budget) for seed in level.seeds]
    known = [each for each in scores if each is not None]
    mean = sum(known) / len(known) if len(known) == len(scores) else None
    failed = None if mean is not None else "it failed"
    return Seen(one.place, one.setting, one.values, mean, failed)


def cost(levels: Sequence[Level], chosen: Mapping[str, Sequence[Seen]]) -> int:
    """Returns the budget that a walk has used, where runs go on from where they stood."""
    reached: dict[tuple[int, str], int] = {}
    for level in levels:
        for one in chosen[level.name]:
            for seed in level.seeds:
                key = (one.setting, seed)
                reached[key] = max(reached.get(key, 0), level.budget)
    return sum(reached.values())


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
