"""Which swept value matters: two importances of a search's settings, by Optuna.

PED-ANOVA asks what sets the best settings apart, fANOVA what moves the score over the whole range.
Both find something in any few settings: beside them stands what they find by chance alone.

Sources: Watanabe et al. (2023), PED-ANOVA, arXiv:2304.10255, and its conditional form (2026),
arXiv:2601.20800; Hutter et al. (2014), An efficient approach for assessing hyperparameter
importance.
"""

import math
import random
import warnings
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from qdsweep.config.extras import require_packages
from qdsweep.errors import BadInput
from qdsweep.strategies.study import Told, is_score, study_of
from qdsweep.sweep.drawn import Drawn

FEWEST, MOST = 20, 300
"""Settings that importances are computed of: fewer say nothing, more would take minutes."""
SHUFFLES = 19
"""A value without effect is above what all of them find once in 20 times."""
_BEST = 0.1  # share of the settings that are the best ones, and how many they are at least
_FEWEST_BEST = 5
_TREES = 16  # the same importances as with Optuna's 64, in a quarter of the time


class Importance(NamedTuple):
    """How much a swept value matters.

    Attributes:
        name: What was swept.
        ped_anova: Its share of what sets the best settings apart from all [fraction]; the shares
            of all names sum to 1.
        fanova: The share of the score's variance that it explains alone [fraction]; nan where not
            every setting has it.
        ped_anova_chance: What `ped_anova` would be by chance: the largest of so many shuffles of
            the scores.
        fanova_chance: What `fanova` would be by chance.
    """

    name: str
    ped_anova: float
    fanova: float
    ped_anova_chance: float
    fanova_chance: float


def best_of(settings: int) -> int:
    """Returns how many settings are the best ones, for PED-ANOVA."""
    return max(math.ceil(_BEST * settings), _FEWEST_BEST)


def lacking(sources: Sequence[Drawn], told: Sequence[Told]) -> str:
    """Returns why nothing can be said of these settings; empty if something can."""
    names = [source.name for source, values in _columns(sources, told) if len(set(values)) > 1]
    if len(names) < 2:
        return "fewer than two values vary, so that nothing is to be compared"
    if len(told) < FEWEST:
        return f"{len(told)} settings are too few ({FEWEST} are needed)"
    if len({one.score for one in told if is_score(one.score)}) < 2:
        return "no two settings have different scores"
    try:
        require_packages("it", "optuna")
    except BadInput as error:
        return f"{error}; then `qdsweep importance`"
    return ""


def importances(sources: Sequence[Drawn], told: Sequence[Told]) -> list[Importance]:
    """Returns how much each value matters, by PED-ANOVA the most important first.

    A setting that failed counts as the worst. The same settings always give the same.

    Args:
        sources: What was swept.
        told: The settings; `lacking` says nothing of them.
    """
    columns = list(_columns(sources, told))
    varied = [source.name for source, values in columns if len({*values} - {""}) > 1]
    always = [source.name for source, values in columns if source.name in varied and all(values)]
    ped, fanova = _both(sources, told, varied, always)
    by_chance = [_both(sources, _shuffled(told, i), varied, always) for i in range(SHUFFLES)]
    whole = sum(ped.values()) or 1.0
    found = [
        Importance(
            name,
            ped[name] / whole,
            fanova.get(name, math.nan),
            max(one[name] for one, _ in by_chance) / whole,
            max(one.get(name, math.nan) for _, one in by_chance),
        )
        for name in varied
    ]
    return sorted(found, key=lambda one: -one.ped_anova)


def _both(
    sources: Sequence[Drawn], told: Sequence[Told], varied: list[str], always: list[str]
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Returns Pearson divergences by PED-ANOVA, and shares of the variance by fANOVA."""
    from optuna.importance import FanovaImportanceEvaluator, PedAnovaImportanceEvaluator

    study = study_of(sources, told)
    ped = PedAnovaImportanceEvaluator(target_quantile=best_of(len(told)) / len(told))
    fanova = FanovaImportanceEvaluator(seed=0, n_trees=_TREES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few settings with a condition, and settings that tie
        return ped.evaluate(study, varied), fanova.evaluate(study, always) if always else {}


def _shuffled(told: Sequence[Told], seed: int) -> list[Told]:
    scores = [one.score for one in told]
    random.Random(seed).shuffle(scores)
    return [one._replace(score=score) for one, score in zip(told, scores, strict=True)]


def _columns(
    sources: Sequence[Drawn], told: Sequence[Told]
) -> "zip[tuple[Drawn, tuple[str, ...]]]":
    return zip(sources, zip(*(one.row for one in told), strict=True), strict=True)
