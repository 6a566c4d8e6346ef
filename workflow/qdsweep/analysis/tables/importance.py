"""The table of hyperparameter importance, at the smallest and the largest budget of a search.

Optuna computes both importances: PED-ANOVA asks what distinguishes the best settings, fANOVA what
changes the score over the whole range. Both report something for any few settings, so the table
also has the values that they report by chance.

Sources: Watanabe et al. (2023), PED-ANOVA, arXiv:2304.10255, and its conditional form (2026),
arXiv:2601.20800; Hutter et al. (2014), An efficient approach for assessing hyperparameter
importance.
"""

import math
import random
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from qdsweep.analysis.columns import dotted_arguments, tabled
from qdsweep.analysis.search_progress import Searched, read_search
from qdsweep.analysis.selection import compared_metric, read_tables
from qdsweep.analysis.sheet import Cell, Sheet, number_cell, text_cell, write_sheet
from qdsweep.analysis.statistics import mean_error_count
from qdsweep.config.model import typed, value_text
from qdsweep.config.requirements import require_packages
from qdsweep.errors import BadInput
from qdsweep.records.paths import SweepDir
from qdsweep.records.plan import Plan, read_plan
from qdsweep.search.tpe import Observation, is_score, study_of, swept_sources
from qdsweep.sweep.drawn import DrawnSource
from qdsweep.text import number

if TYPE_CHECKING:
    import pandas as pd


FEWEST, MOST = 20, 300
"""Settings that importances are computed of: fewer show nothing, more would take minutes."""
SHUFFLES = 19
"""A value without effect is above what all of them find once in 20 times."""
_BEST = 0.1  # share of the settings that are the best ones, and how many they are at least
_FEWEST_BEST = 5
_TREES = 16  # the same importances as with Optuna's 64, in a quarter of the time

# Values of a setting as text, and its score, larger is better; None where it failed.
Scored = tuple[Mapping[str, str], float | None]
CHANGING = (
    "In population-based training values change during a run, so no score belongs to one value."
)
_ASKED = (
    "PED-ANOVA shows which parameter distinguishes the best settings (the best tenth, at least"
    " five). Its shares sum to 100 %. fANOVA shows which parameter changes the score over its whole"
    " range: the share of the variance that it explains without the others. The rest to 100 % is"
    " due to combinations. By chance: the largest value of 19 shuffles of the scores. A smaller"
    " importance cannot be distinguished from no effect. A conditional parameter counts in"
    " PED-ANOVA where its condition holds, and has no fANOVA. At the largest budget of a halving"
    " there are only promoted settings, so a value that all of them share has no importance there."
)
_BOLD = "Bold: more than by chance."

NAME, TITLE = "importance", "Importance of swept parameters"


class Importance(NamedTuple):
    """How much a swept parameter matters.

    Attributes:
        name: What was swept.
        ped_anova: Its share of what distinguishes the best settings [fraction]; the shares
            of all names sum to 1.
        fanova: The share of the score's variance that it explains without the others [fraction];
            nan where not every setting has it.
        ped_anova_chance: `ped_anova` by chance: the largest value of `SHUFFLES` shuffles of the
            scores.
        fanova_chance: `fanova` by chance.
    """

    name: str
    ped_anova: float
    fanova: float
    ped_anova_chance: float
    fanova_chance: float


def best_of(settings: int) -> int:
    """Returns how many settings are the best ones, for PED-ANOVA."""
    return max(math.ceil(_BEST * settings), _FEWEST_BEST)


def why_no_importance(sources: Sequence[DrawnSource], settings: Sequence[Observation]) -> str:
    """Returns why no importance can be computed from these settings; empty if one can."""
    names = [source.name for source, values in _columns(sources, settings) if len(set(values)) > 1]
    if len(names) < 2:
        return "fewer than two swept parameters vary"
    if len(settings) < FEWEST:
        return f"{len(settings)} settings are too few ({FEWEST} are needed)"
    if len({setting.score for setting in settings if is_score(setting.score)}) < 2:
        return "no two settings have different scores"
    try:
        require_packages("it", "optuna")
    except BadInput as error:
        return f"{error}; then `qdsweep importance`"
    return ""


def importances(
    sources: Sequence[DrawnSource], settings: Sequence[Observation]
) -> list[Importance]:
    """Returns how much each value matters, by PED-ANOVA the most important first.

    A setting that failed counts as the worst. The same settings always give the same.

    Args:
        sources: What was swept.
        settings: The settings; `lacking` returns nothing for them.
    """
    columns = list(_columns(sources, settings))
    varied = [source.name for source, values in columns if len({*values} - {""}) > 1]
    always = [source.name for source, values in columns if source.name in varied and all(values)]
    ped, fanova = _both(sources, settings, varied, always)
    by_chance = [_both(sources, _shuffled(settings, i), varied, always) for i in range(SHUFFLES)]
    whole = sum(ped.values()) or 1.0
    shares = [
        Importance(
            name,
            ped[name] / whole,
            fanova.get(name, math.nan),
            max(share[name] for share, _ in by_chance) / whole,
            max(share.get(name, math.nan) for _, share in by_chance),
        )
        for name in varied
    ]
    return sorted(shares, key=lambda share: -share.ped_anova)


def _both(
    sources: Sequence[DrawnSource],
    settings: Sequence[Observation],
    varied: list[str],
    always: list[str],
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Returns Pearson divergences by PED-ANOVA, and shares of the variance by fANOVA."""
    from optuna.importance import FanovaImportanceEvaluator, PedAnovaImportanceEvaluator

    study = study_of(sources, settings)
    ped = PedAnovaImportanceEvaluator(target_quantile=best_of(len(settings)) / len(settings))
    fanova = FanovaImportanceEvaluator(seed=0, n_trees=_TREES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few settings with a condition, and settings that tie
        return ped.evaluate(study, varied), fanova.evaluate(study, always) if always else {}


def _shuffled(settings: Sequence[Observation], seed: int) -> list[Observation]:
    scores = [setting.score for setting in settings]
    random.Random(seed).shuffle(scores)
    return [setting._replace(score=score) for setting, score in zip(settings, scores, strict=True)]


def _columns(
    sources: Sequence[DrawnSource], settings: Sequence[Observation]
) -> "zip[tuple[DrawnSource, tuple[str, ...]]]":
    return zip(sources, zip(*(setting.row for setting in settings), strict=True), strict=True)


_COLUMNS = ("of", "settings", "best", *Importance._fields)


def write_importance(sweep_dir: Path, runs_dir: Path) -> None:
    """Writes `tables/importance.*`; without rows, but with the reason, where none can be computed.

    Raises:
        BadInput: A table or a marker is missing or damaged.
    """
    import pandas as pd

    sweep = SweepDir(sweep_dir)
    plan = read_plan(sweep)
    search = read_search(sweep, plan)
    columns = dotted_arguments(plan, sweep.results)
    parts = _at_budgets(search) if search else _at_end(sweep_dir, plan)
    records, remarks = [], []
    for heading, settings in parts:
        candidates = [{name: typed(text) for name, text in v.items()} for v, _ in settings]
        sources = swept_sources(plan.sweep, candidates)
        computed = [
            Observation(tuple(v[source.name] for source in sources), score) for v, score in settings
        ]
        start = f"{heading[0].upper()}{heading[1:]}"
        why = why_no_importance(sources, computed)
        if why:
            remarks.append(f"{start}: {why}.")
            continue
        if len(computed) > MOST:
            remarks.append(f"{start}: the first {MOST} of {len(computed)} settings.")
            computed = computed[:MOST]
        failed = sum(not is_score(setting.score) for setting in computed)
        if failed:
            remarks.append(f"{start}: the {failed} that failed count as the worst.")
        about = {"of": heading, "settings": len(computed), "best": best_of(len(computed))}
        records += [
            {**about, **share._asdict(), "name": columns.get(share.name, share.name)}
            for share in importances(sources, computed)
        ]
    data = pd.DataFrame(records, columns=list(_COLUMNS))
    write_sheet(sweep.tables, _sheet(tabled(plan, sweep.results), data, remarks), data)


def _at_budgets(search: Searched) -> Iterator[tuple[str, list[Scored]]]:
    """Yields the settings that had the smallest budget, and those that had the largest."""
    if search.is_pbt:
        return
    budgets = sorted({level.budget for level in search.levels})
    for budget in dict.fromkeys((budgets[0], budgets[-1])):
        placed = {p.setting: p for p in search.placed if p.level.budget == budget}
        texts: list[Scored] = [
            ({name: value_text(value) for name, value in candidate.values.items()}, candidate.score)
            for _, candidate in sorted(placed.items())
            if candidate.is_done
        ]
        if texts:
            yield f"after {number(budget)} {search.unit}", texts


def _at_end(sweep_dir: Path, plan: Plan) -> Iterator[tuple[str, list[Scored]]]:
    """Yields the groups of each score scale; `qdsweep aggregate` has their means."""
    tables = read_tables(sweep_dir)
    values = {group: rows[0].values for group, rows in plan.groups.items()}
    for scale, groups in tables.score_scales.items():
        own = [group for group in groups if group not in plan.imported_groups]
        done = tables.with_results
        metric = compared_metric(plan.rank, done, own)
        scores = done.groupby("group")[metric.name]
        means = metric.sign * scores.agg(lambda values: mean_error_count(values.to_numpy(float))[0])
        if own:
            heading = "at the end" if len(tables.score_scales) == 1 else scale
            yield heading, [(values[group], float(means[group])) for group in own]


def _sheet(plan: Plan, data: "pd.DataFrame", remarks: Sequence[str]) -> Sheet:
    rows = [
        [
            text_cell(row["of"]),
            text_cell(plan.called(row["name"])),
            *_pair(row["ped_anova"], row["ped_anova_chance"]),
            *_pair(row["fanova"], row["fanova_chance"]),
        ]
        for row in data.to_dict("records")
    ]
    columns = [
        "Settings",
        "Parameter",
        "PED-ANOVA (%)",
        "PED-ANOVA by chance (%)",
        "fANOVA (%)",
        "fANOVA by chance (%)",
    ]
    note = " ".join([*([_ASKED, _BOLD] if rows else []), *remarks]) or CHANGING
    return Sheet(NAME, TITLE, note, columns, 2, rows)


def _pair(value: float, chance: float) -> tuple[Cell, Cell]:
    """Returns an importance, bold where it is above chance, and the value by chance."""
    return (
        number_cell(number(100 * value, 1), value, bold=value > chance),
        number_cell(number(100 * chance, 1), chance),
    )
