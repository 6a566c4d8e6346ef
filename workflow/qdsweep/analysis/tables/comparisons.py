"""Tests between groups of one scale, corrected for the number of pairs.

`comparisons` has all pairs of a scale. `factors` has the pairs that differ in one swept parameter
only.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qdsweep.analysis.legend import Called
from qdsweep.analysis.noise import tested_scales
from qdsweep.analysis.selection import compared_metric, in_percent, short_names
from qdsweep.analysis.sheet import (
    Cell,
    Sheet,
    number_cell,
    remove_sheet,
    text_cell,
    write_sheet,
)
from qdsweep.analysis.statistics import (
    ALPHA,
    ENOUGH_SEEDS,
    Differences,
    Scores,
    holm,
    least_mann_whitney,
    mann_whitney,
    mean_of,
    paired,
    probability_of_improvement,
    summaries_of,
    welch,
)
from qdsweep.metrics import Metric
from qdsweep.records.paths import SweepDir
from qdsweep.records.plan import Plan
from qdsweep.sweep.groups import brief_names, group_labels, label_columns
from qdsweep.text import p_value, plural, significant, with_interval

if TYPE_CHECKING:
    import pandas as pd

# The relative error of a mean due to the order of its sum.
_ROUNDING = 1e-14
HEADINGS = (
    "Higher mean",
    "Lower mean",
    "Seeds",
    "Difference [95 %]",
    "A [95 %]",
    "p (Bonferroni)",
    "p (Holm)",
    "p (Mann-Whitney, Holm)",
)
_DATA = (
    "higher", "lower", "n_higher", "n_lower", "mean_higher", "mean_lower",
    "difference", "difference_se", "difference_low", "difference_high",
    "improvement", "improvement_low", "improvement_high", "welch_p", "holm_p", "mann_whitney_p",
    "bonferroni_p", "mann_whitney_holm_p",
)  # fmt: skip
# The key `tests` of the sweep file, unless runs of one seed are compared.
WELCH = "welch"
Records = list[dict[str, Any]]
# More groups of a scale than these, and the table shows the best ones: all pairs are tested.
SHOWN_GROUPS = 12
NOTHING_TESTED = (
    f"No test: it needs two groups of at least {ENOUGH_SEEDS} seeds each, with different runs and"
    " comparable QD scores (same domain, archive and offset)."
)
_NAME = "factors"
_NAMED = 5  # untested groups in a note
# More pairs of a factor than these, and the table shows those within the best of the rest.
SHOWN_PAIRS = SHOWN_GROUPS * (SHOWN_GROUPS - 1) // 2


@dataclass(frozen=True)
class Runs:
    """The results of a group's runs in one metric.

    Attributes:
        ids: The runs, each once.
        scores: ``(n,)`` their results, one per seed.
        seeds: ``(n,)`` their seeds as text; none where no seed is swept.
    """

    ids: frozenset[str]
    scores: Scores
    seeds: Sequence[str] = ()


@dataclass(frozen=True)
class Pairs:
    """The tests between the groups of one scale.

    Attributes:
        groups: Those of at least `ENOUGH_SEEDS` runs, the best mean first.
        first: ``(p,)`` position of each pair's group with the better mean.
        second: ``(p,)`` position of the other.
        differences: ``(p,)`` of their means.
        holm: ``(p,)`` p values of the t tests, corrected for the p pairs.
        ranks: ``(p,)`` p values of the Mann-Whitney U test; nan where runs are paired.
        ranks_holm: ``(p,)`` the same, corrected.
        count: The number of pairs that are corrected for.
    """

    groups: list[str]
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    differences: Differences
    holm: Scores
    ranks: Scores
    ranks_holm: Scores
    count: int

    def keep(self, wanted: NDArray[np.bool_]) -> "Pairs":
        """Returns those of its pairs that are wanted, ``(p,)``; they stay corrected for all."""
        return replace(
            self,
            first=self.first[wanted],
            second=self.second[wanted],
            differences=Differences(*(part[wanted] for part in self.differences)),
            holm=self.holm[wanted],
            ranks=self.ranks[wanted],
            ranks_holm=self.ranks_holm[wanted],
        )


def runs_of(plan: Plan, summary: "pd.DataFrame", metric: str) -> dict[str, Runs]:
    """Returns the results of each group that has any and may be tested.

    A run that is listed twice counts once.
    """
    there = summary[np.isfinite(summary[metric].to_numpy(float))]
    there = there[~there["group"].isin(plan.untested)]

    def seeds(runs: "pd.DataFrame") -> list[str]:
        return list(runs["seed"].astype(str)) if "seed" in runs else []

    return {
        str(group): Runs(frozenset(runs["id"]), runs[metric].to_numpy(float), seeds(runs))
        for group, runs in there.drop_duplicates(["group", "id"]).groupby("group", sort=False)
    }


def independent(ids: Sequence[frozenset[str]]) -> NDArray[np.bool_]:
    """Returns which groups have no run in common, ``(k, k)``; none has with itself."""
    alone = ~np.eye(len(ids), dtype=bool)
    if len(frozenset().union(*ids)) < sum(map(len, ids)):
        alone &= np.array([[own.isdisjoint(other) for other in ids] for own in ids])
    return alone


def paired_runs(first: Runs, second: Runs, sign: int = 1) -> Differences | None:
    """Returns the paired test of runs of the same seeds; None with fewer than `ENOUGH_SEEDS`."""
    own, others = (dict(zip(runs.seeds, runs.scores, strict=True)) for runs in (first, second))
    common = [seed for seed in own if seed in others]
    if len(common) < ENOUGH_SEEDS:
        return None
    return paired(*(sign * np.array([of[seed] for seed in common]) for of in (own, others)))


def compare(
    groups: Mapping[str, Runs],
    sign: int = 1,
    chosen: Callable[[str, str], bool] = lambda first, second: True,
    tests: str = WELCH,
) -> Pairs:
    """Tests pairs of groups by t tests, corrected by Holm's method for all of them.

    Groups of fewer than `ENOUGH_SEEDS` runs are left out. So are pairs that have a run in common,
    at different budgets, as their results are not independent.

    Args:
        groups: Their results.
        sign: -1 where the smaller mean is the better one.
        chosen: Whether two groups are to be compared.
        tests: The key of the sweep file.
    """
    tested = [name for name, runs in groups.items() if len(runs.scores) >= ENOUGH_SEEDS]
    tested.sort(key=lambda name: -sign * mean_of(groups[name].scores))
    first, second = np.triu_indices(len(tested), k=1)
    runs = [groups[name] for name in tested]
    taken = independent([own.ids for own in runs])[first, second]
    taken &= np.array(
        [chosen(tested[i], tested[j]) for i, j in zip(first, second, strict=True)], bool
    )
    first, second = first[taken], second[taken]
    if tests == WELCH:
        summaries = summaries_of([own.scores for own in runs]).reshape(-1, 3)
        differences = welch(summaries[first], summaries[second])
        ranks = mann_whitney(*([runs[place].scores for place in side] for side in (first, second)))
    else:
        first, second, differences = _of_seeds(runs, first, second)
        ranks = np.full(len(first), np.nan)
    p = holm(differences.apart), ranks, holm(ranks)
    return Pairs(tested, first, second, differences, *p, len(first))


def _of_seeds(
    runs: Sequence[Runs], first: NDArray[np.intp], second: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp], Differences]:
    """Returns those of the pairs that have enough seeds in common, and their paired tests."""
    each = [paired_runs(runs[i], runs[j]) for i, j in zip(first, second, strict=True)]
    taken = np.array([one is not None for one in each], bool)
    known = [one for one in each if one is not None]
    parts = zip(*known, strict=True) if known else np.empty((len(Differences._fields), 0))
    return first[taken], second[taken], Differences(*map(np.array, parts))


def pair_records(groups: Mapping[str, Runs], pairs: Pairs, sign: int) -> Records:
    """Returns a row of the CSV file, `DATA`, for each pair; `sign`: as `compare` has it."""
    records = []
    apart = pairs.differences.apart
    for place, (i, j) in enumerate(zip(pairs.first, pairs.second, strict=True)):
        better, worse = (pairs.groups[position] for position in (i, j)[::sign])
        higher, lower = groups[better].scores, groups[worse].scores
        improvement = probability_of_improvement([higher], [lower])
        estimate = pairs.differences.estimate(place, ALPHA / pairs.count)
        ends = (estimate.low, estimate.high) if sign > 0 else (-estimate.high, -estimate.low)
        error = np.ldexp(pairs.differences.error[place], pairs.differences.exponent[place])
        values = (
            *(better, worse, len(higher), len(lower)),
            *(mean_of(higher), mean_of(lower), sign * estimate.value, float(error), *ends),
            *(improvement.value, improvement.low, improvement.high),
            *(apart[place], pairs.holm[place], pairs.ranks[place]),
            *(min(pairs.count * apart[place], 1.0), pairs.ranks_holm[place]),
        )
        records.append(dict(zip(_DATA, values, strict=True)))
    return records


def pair_cells(record: dict[str, Any], called: Callable[[str], str]) -> list[Cell]:
    """Returns a row of the table, `HEADINGS`, for a record; `called`: group -> its label."""
    ends = ("_low", "", "_high")
    least, difference, most = (significant(record[f"difference{end}"]) for end in ends)
    known = math.isfinite(record["difference_low"])
    low, value, high = (record[f"improvement{end}"] for end in ends)
    means, error = (record["mean_higher"], record["mean_lower"]), record["difference_se"]
    equal = math.isclose(*means, rel_tol=_ROUNDING, abs_tol=_ROUNDING * error)
    p_values = (record[name] for name in ("bonferroni_p", "holm_p", "mann_whitney_holm_p"))
    return [
        text_cell(called(record["higher"])),
        text_cell(called(record["lower"]) + (" (equal)" if equal else "")),
        number_cell(_counts(record), record["n_higher"]),
        number_cell(
            f"{difference} [{least}, {most}]" if known else difference, record["difference"]
        ),
        number_cell(with_interval(value, low, high, decimals=2), value),
        *(number_cell(p_value(p), p) for p in p_values),
    ]


def _counts(record: dict[str, Any]) -> str:
    counts = record["n_higher"], record["n_lower"]
    return ", ".join(map(str, counts if counts[0] != counts[1] else counts[:1]))


def limits_text(records: Records, most: int) -> str:
    """Returns what the numbers of runs and pairs cannot show; nothing where all can be shown.

    `most`: the largest number of pairs that is corrected for.
    """
    text = ""
    runs = [(record["n_higher"], record["n_lower"]) for record in records]
    least = most * min(least_mann_whitney(*counts) for counts in runs)
    if least > ALPHA:
        text += (
            f" With few runs for {plural(most, 'pair')}, p (Mann-Whitney, Holm) is at least"
            f" {p_value(min(least, 1.0))}."
        )
    if any(math.isnan(record["difference_low"]) for record in records):
        text += (
            " No interval: all runs of a group are equal, and the order of few runs is no evidence."
        )
    return text


def write_comparisons(
    sweep_dir: Path,
    plan: Plan,
    summary: "pd.DataFrame",
    score_scales: Mapping[str, list[str]],
    called: Called,
) -> None:
    """Writes `tables/comparisons`: the tests between the groups of each scale."""
    import pandas as pd

    sheet, records = comparisons(plan, summary, score_scales, called)
    data = pd.DataFrame(records, columns=["scale", "metric", *_DATA])
    write_sheet(SweepDir(sweep_dir).tables, sheet, data)


def comparisons(
    plan: Plan,
    summary: "pd.DataFrame",
    score_scales: Mapping[str, list[str]],
    called: Called,
) -> tuple[Sheet, Records]:
    """Returns the tests between the groups of each scale, for a reader and as data."""
    records: Records = []
    rows: list[list[Cell]] = []
    left_out, most = False, 0
    scales = tasks(plan, summary, score_scales)
    compared = {metric for _, _, metric, _ in scales}
    for scale, task, metric, groups in scales:
        pairs = compare(groups, metric.sign, tests=plan.tests)
        most = max(most, pairs.count)
        shown = pairs.keep(np.maximum(pairs.first, pairs.second) < SHOWN_GROUPS)
        listed = pair_records(groups, shown, metric.sign)
        start = [text_cell(called.scale(task))] if task else []
        rows += [[*start, *pair_cells(record, called.label)] for record in listed]
        records += [{"scale": scale, "metric": metric.column, **record} for record in listed]
        left_out = left_out or len(shown.holm) < pairs.count
    heads = ["Task"] if len(score_scales) > 1 else []
    note = NOTHING_TESTED
    if set(plan.noise) - set(tested_scales(plan, plan.noise)):
        note = "Groups are not tested where evaluations depend on their seed."
    if rows:
        note = _pairs_note(plan, compared, left_out) + limits_text(records, most)
    note += untested_text(plan, called.label)
    columns = [*heads, *HEADINGS]
    title = "Differences between groups"
    return Sheet("comparisons", title, note, columns, len(heads) + 2, rows), records


def tasks(
    plan: Plan, summary: "pd.DataFrame", score_scales: Mapping[str, list[str]]
) -> list[tuple[str, str, Metric, dict[str, Runs]]]:
    """Returns each scale, its short name, the metric it compares in, and its groups' results.

    The short name is empty where there is only one scale.
    """
    summary = in_percent(summary)
    names = short_names(list(score_scales)) if len(score_scales) > 1 else [""] * len(score_scales)
    scales = []
    for (scale, groups), name in zip(score_scales.items(), names, strict=True):
        metric = compared_metric(plan.rank, summary, groups)
        of_metric = runs_of(plan, summary, metric.column)
        there = {group: of_metric[group] for group in groups if group in of_metric}
        scales.append((scale, name, metric, there))
    return scales


def tests_text(plan: Plan, family: str, compared: Collection[Metric]) -> str:
    """Returns a text on the tests of pairs.

    Args:
        plan: The sweep.
        family: The pairs that are corrected for.
        compared: The metrics that scales are compared in.
    """
    rank, paired = plan.rank, plan.tests != WELCH
    without = f" (of the {rank.always.phrase} where the archive has no cells)"
    mixed = any(metric is not rank for metric in compared)
    test = "Student's t-test of the differences of runs of one seed" if paired else "Welch's t-test"
    ranks = "" if paired else " Mann-Whitney: the exact U test."
    return (
        f"Difference: of the mean {rank.phrase}{without if mixed else ''}, with simultaneous 95 %"
        f" intervals by {test} (Bonferroni). p: two-sided, corrected for {family}.{ranks}"
        " A: Vargha and Delaney's measure, the probability that a run of the group with the higher"
        f" mean is {'worse' if rank.smaller else 'better'} than one of the other (ties count half),"
        " with its pointwise 95 % interval."
    )


def untested_text(plan: Plan, called: Callable[[str], str] = str) -> str:
    """Returns a sentence for each reason why groups are not tested; `called`: group -> label."""
    reasons: dict[str, list[str]] = {}
    for group, reason in plan.untested.items():
        reasons.setdefault(reason, []).append(called(group))
    text = ""
    for reason, groups in reasons.items():
        named = [*groups[:_NAMED], *["..."] * (len(groups) > _NAMED)]
        text += f" Not tested: {'; '.join(named)} ({reason})."
    return text


def _pairs_note(plan: Plan, compared: Collection[Metric], left_out: bool) -> str:
    family = "all pairs of the domain, archive and offset"
    text = (
        f"Every pair of groups with comparable QD scores. {tests_text(plan, family, compared)}"
        " These are more questions than that for the best group, so a pair may be open here"
        " although the best group is known."
    )
    if left_out:
        text += (
            f" Shown: the {SHOWN_GROUPS} groups with the {plan.rank.extreme} means. The correction"
            " counts all pairs."
        )
    return text


class Factor(NamedTuple):
    """A swept parameter within one scale.

    Attributes:
        name: As it was swept.
        values: Group -> its value.
        within: Group -> the other swept values, in words.
    """

    name: str
    values: dict[str, str]
    within: dict[str, str]

    def alone(self, first: str, second: str) -> bool:
        """Returns whether two groups differ in nothing else."""
        return self.within[first] == self.within[second]


def write_factors(
    sweep_dir: Path,
    plan: Plan,
    summary: "pd.DataFrame",
    score_scales: Mapping[str, list[str]],
    called: Called,
) -> None:
    """Writes `tables/factors`, where two or more swept parameters distinguish the groups.

    Files of an earlier start are removed if there is nothing to write.
    """
    import pandas as pd

    records: Records = []
    rows: list[list[Cell]] = []
    left_out, most = False, 0
    scales = tasks(plan, summary, score_scales)
    for scale, task, metric, groups in scales:
        start = [text_cell(called.scale(task))] if task else []
        for factor in factors_of(plan, list(groups)):
            pairs = compare(groups, metric.sign, factor.alone, plan.tests)
            most = max(most, pairs.count)
            order = [factor.within[pairs.groups[position]] for position in pairs.first]
            shown = _shown(order, groups, factor, metric.sign)
            listed = pair_records(groups, pairs.keep(np.isin(order, shown)), metric.sign)
            listed.sort(key=lambda record: shown.index(factor.within[record["higher"]]))
            left_out = left_out or len(listed) < len(order)
            values = {group: called.value(value) for group, value in factor.values.items()}
            for record in listed:
                tested = pair_cells(record, values.__getitem__)
                within = factor.within[record["higher"]]
                what = [text_cell(plan.called(factor.name)), text_cell(called.called(within))]
                rows.append([*start, *what, *tested])
                where = {"scale": scale, "metric": metric.column}
                records.append(where | {"factor": factor.name, "within": within} | record)
    folder = SweepDir(sweep_dir).tables
    if not rows:
        remove_sheet(folder, _NAME)
        return
    heads = [*(["Task"] if len(score_scales) > 1 else []), "Factor", "Within"]
    compared = {metric for _, _, metric, _ in scales}
    note = _note(plan, compared, left_out) + limits_text(records, most)
    note += untested_text(plan, called.label)
    sheet = Sheet(
        _NAME, "Differences in one parameter", note, [*heads, *HEADINGS], len(heads) + 2, rows
    )
    data = pd.DataFrame(records, columns=["scale", "metric", "factor", "within", *_DATA])
    write_sheet(folder, sheet, data)


def factors_of(plan: Plan, groups: list[str]) -> list[Factor]:
    """Returns the swept parameters that distinguish groups; none where there is only one."""
    values = [plan.groups[group][0].values for group in groups]
    names = label_columns(plan.columns, values)
    if len(names) < 2:
        return []
    factors, brief = [], brief_names(plan.columns)
    for name in names:
        others = group_labels([other for other in names if other != name], values, "", brief)
        own = [row[name] for row in values]
        factors.append(Factor(name, *(dict(zip(groups, of, strict=True)) for of in (own, others))))
    return factors


def _shown(order: list[str], groups: Mapping[str, Runs], factor: Factor, sign: int) -> list[str]:
    """Returns the values of the other parameters that the table shows, in the sweep's order.

    `order`: those of each pair.
    """
    best: dict[str, float] = {}
    for group, runs in groups.items():
        mean, within = sign * float(mean_of(runs.scores)), factor.within[group]
        best[within] = max(best.get(within, mean), mean)
    shown, count = set[str](), 0
    for within in sorted(best, key=lambda within: -best[within]):
        count += order.count(within)
        if count > SHOWN_PAIRS and shown:
            break
        shown.add(within)
    return [within for within in best if within in shown]


def _note(plan: Plan, compared: Collection[Metric], left_out: bool) -> str:
    text = (
        "Pairs of groups that differ in one swept parameter only."
        f" {tests_text(plan, 'all such pairs of the parameter', compared)} The table of all"
        " pairs corrects for more of them."
    )
    if left_out:
        text += (
            f" Shown: the pairs within the values of the others that have the {plan.rank.extreme}"
            " means. The correction counts all pairs."
        )
    return text
