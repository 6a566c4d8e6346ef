"""TPE in batches: Optuna proposes new candidates near good earlier ones.

A batch is a pure function of the records before it. The sampler starts empty each time, receives
the recorded candidates in the order of their numbers, and then proposes one after another. So the
same records give the same batch after any kill, and on any number of cores.

Each source is mapped to its quantiles, in [0, 1], where its distribution is uniform. A choice is
mapped to the position of its value. A source whose condition does not hold is absent. The model
uses the largest budget that has enough candidates (BOHB).

Sources: Bergstra et al. (2011), Algorithms for hyper-parameter optimization; Watanabe (2023),
arXiv:2304.11127; Falkner et al. (2018), BOHB.
"""

import hashlib
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from qdsweep.config.model import typed, value_text
from qdsweep.errors import BadInput
from qdsweep.records.search_files import Level, Seen
from qdsweep.search.draws import random_row
from qdsweep.sweep.drawn import SAMPLE, DrawnSource
from qdsweep.sweep.grammar import drawn_in

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution


WrittenRow = tuple[str, ...]
"""One value per source, as written, which is empty where its condition does not hold."""
Values = Mapping[str, Any]
SeenLevels = Sequence[tuple[Level, Sequence[Seen]]]
"""The levels so far, each with the results of its candidates."""
Ask = Callable[[SeenLevels, Level], Sequence[Values]]
"""Returns the values of a level's new candidates."""

# The number of tries of the model, and then of random draws, for a new candidate.
_ASKED = 50
_DRAWN = 10_000


class Observation(NamedTuple):
    """The result of a candidate.

    Attributes:
        row: Its values.
        score: Its score, where larger is better; None if the candidate failed.
    """

    row: WrittenRow
    score: float | None


def is_score(score: float | None) -> TypeGuard[float]:
    """Returns whether a model can use a score, that is, whether the candidate did not fail."""
    return score is not None and math.isfinite(score)


def swept_sources(sweep: str, candidates: Sequence[Values]) -> list[DrawnSource]:
    """Returns the swept sources without the seed. Sources that are not drawn become choices.

    Args:
        sweep: The text of the sweep.
        candidates: The values of each candidate.
    """
    drawn = {source.name: source for source in drawn_in(sweep)}
    return [
        drawn.get(name)
        or DrawnSource(
            name, "choice", tuple(dict.fromkeys(value_text(c[name]) for c in candidates))
        )
        for name in candidates[0]
        if name not in (SAMPLE, "seed")
    ]


def study_of(
    sources: Sequence[DrawnSource],
    observations: Sequence[Observation],
    seeds: tuple[int, int] = (0, 0),
) -> "Study":
    """Returns a study that maximises the score, where failed candidates are below all others.

    Args:
        sources: The swept sources.
        observations: The candidates, at least one of which has not failed.
        seeds: The seeds of its sampler: the search's seed and the number of the first new
            candidate.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    digest = hashlib.sha256("{} {}".format(*seeds).encode()).digest()
    scores = [score for _, score in observations if is_score(score)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna has called `group` experimental since 2021
        sampler = optuna.samplers.TPESampler(
            seed=int.from_bytes(digest[:4], "big"),
            n_startup_trials=1,
            multivariate=True,
            group=True,  # models the sources with the same condition together
            constant_liar=True,  # separates the candidates of a batch
            gamma=lambda count: min(math.ceil(0.1 * count), 25, len(scores)),  # good candidates
        )
    study = optuna.create_study(direction="maximize", sampler=sampler, study_name="search")
    failed = math.nextafter(min(scores), -math.inf)  # no tie, as only the order counts
    for row, score in observations:
        values = dict(zip([source.name for source in sources], row, strict=True))
        active = [source for source in sources if source.holds(values)]
        trial = optuna.trial.create_trial(
            params={source.name: _coordinate(source, values[source.name]) for source in active},
            distributions={source.name: _distribution(source) for source in active},
            value=score if is_score(score) else failed,
        )
        study.add_trial(trial)
    return study


def _suggested(study: "Study", sources: Sequence[DrawnSource]) -> Iterator[WrittenRow]:
    """Yields the proposals of a study. Each proposal considers the earlier ones."""
    while True:
        trial = study.ask()
        row: dict[str, str] = {}
        for source in sources:
            row[source.name] = ""
            if source.holds(row):
                row[source.name] = (
                    source.arguments[trial.suggest_categorical(source.name, _places(source))]
                    if source.kind == "choice"
                    else source.value(trial.suggest_float(source.name, 0, 1))
                )
        yield tuple(row.values())


def _normalized(values: Sequence[str]) -> WrittenRow:
    """Returns values in one spelling, such as 0.001 for `1e-3`."""
    return tuple(value_text(typed(value)) for value in values)


def _distribution(source: DrawnSource) -> "BaseDistribution":
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    if source.kind == "choice":
        return CategoricalDistribution(_places(source))
    return FloatDistribution(0, 1)


def _places(source: DrawnSource) -> range:
    return range(len(source.arguments))


def _coordinate(source: DrawnSource, text: str) -> float | int:
    if source.kind == "choice":
        (value,) = _normalized([text])
        return _normalized(source.arguments).index(value)
    return min(max(source.quantile(text), 0.0), 1.0)


def asker(
    sources: Sequence[DrawnSource], seed: int, fits: Callable[[WrittenRow], bool] | None = None
) -> Ask:
    """Returns the function that proposes the candidates of a level.

    Args:
        sources: The drawn sources.
        seed: The seed of the search.
        fits: Whether a row may be proposed. Existing candidates are never proposed.
    """

    def ask(seen: SeenLevels, level: Level) -> list[Values]:
        observations = [
            Observation(_row(sources, candidate.values), candidate.score)
            for candidate in for_model(sources, seen)
        ]
        candidates = [candidate for _, of_level in seen for candidate in of_level]
        taken = {_row(sources, candidate.values) for candidate in candidates}

        def is_allowed(row: WrittenRow) -> bool:
            return _normalized(row) not in taken and (fits is None or fits(row))

        # Parallel brackets are proposed together. Each takes its part, so they share no candidate.
        first = 1 + max(candidate.setting for candidate in candidates)
        before = level.first - first
        proposed = propose_samples(
            sources, observations, seed, first, before + level.places, is_allowed
        )
        names = [source.name for source in sources]
        return [dict(zip(names, map(typed, row), strict=True)) for row in proposed[before:]]

    return ask


def for_model(sources: Sequence[DrawnSource], seen: SeenLevels) -> list[Seen]:
    """Returns the candidates of the largest budget that has enough candidates for a model.

    A model needs three more candidates than sources (BOHB's N_min + 2), one of which has not
    failed.

    Args:
        sources: The drawn sources. A source with a single value does not count.
        seen: The results of the levels so far.

    Returns:
        The candidates in the order of their numbers, or none if no budget has enough.
    """
    by_budget: dict[int, dict[int, Seen]] = {}
    for level, candidates in seen:
        by_budget.setdefault(level.budget, {}).update((c.setting, c) for c in candidates)
    enough = 3 + sum(source.kind != "choice" or len(source.arguments) > 1 for source in sources)
    for _, by_number in sorted(by_budget.items(), reverse=True):
        if len(by_number) >= enough and any(is_score(c.score) for c in by_number.values()):
            return [candidate for _, candidate in sorted(by_number.items())]
    return []


def propose_samples(
    sources: Sequence[DrawnSource],
    observations: Sequence[Observation],
    seed: int,
    first: int,
    number: int,
    is_allowed: Callable[[WrittenRow], bool],
) -> list[WrittenRow]:
    """Returns new candidates, which depend only on the arguments.

    Args:
        sources: The drawn sources.
        observations: Existing candidates in the order of their numbers. A failed candidate counts
            as worse than all others. If there are none, the new ones are drawn at random.
        seed: The seed of the search.
        first: The number of the first new candidate.
        number: Number of new candidates.
        is_allowed: Whether a row may be proposed. No row is proposed twice.

    Raises:
        BadInput: There are too few candidates.
    """
    study = study_of(sources, observations, (seed, first)) if observations else None
    rows: list[WrittenRow] = []
    drawn = (random_row(sources, seed, candidate) for candidate in count(first))
    for new in range(first, first + number):
        model = islice(_suggested(study, sources), _ASKED) if study else ()
        tries = chain(model, islice(drawn, _DRAWN))
        row = next((row for row in tries if is_allowed(row) and row not in rows), None)
        if row is None:
            raise BadInput(
                f"search: no new valid values were found for configuration {new}, because the "
                "drawn sources have too few values. Write fewer samples or batches"
            )
        rows.append(row)
    return rows


def count_rows(sources: Sequence[DrawnSource], enough: int) -> int:
    """Returns the number of different rows that can be drawn, at most `enough`."""
    return sum(1 for _ in islice(_rows(sources, {}), enough))


def _rows(sources: Sequence[DrawnSource], row: dict[str, str]) -> Iterator[dict[str, str]]:
    if not sources:
        yield row
        return
    first, *others = sources
    values = (first.every() or map(str, count())) if first.holds(row) else ("",)
    for value in values:
        yield from _rows(others, {**row, first.name: value})


def _row(sources: Sequence[DrawnSource], values: Values) -> WrittenRow:
    return tuple(value_text(values.get(source.name, "")) for source in sources)
