"""Recorded settings as a study of Optuna, for what it proposes and what it finds important.

Each source stands on the scale of its own quantiles, in [0, 1], where its distribution is uniform;
a choice stands as the place of its value. A source whose condition does not hold is not there.
"""

import hashlib
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from qdsweep.config.values import typed, value_text
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
