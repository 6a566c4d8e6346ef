"""The first sentences of the page: what was swept, and what came out."""

from typing import TYPE_CHECKING

from qdsweep.analysis.data import SweepData
from qdsweep.analysis.noise import noise_text, ranked_scales, tested_scales
from qdsweep.analysis.selection import SweepTables, compared_metric, largest_budgets
from qdsweep.analysis.statistics import ENOUGH_SEEDS, MIN_SEEDS, SEEDS_RULE, half_width
from qdsweep.analysis.tables.comparisons import WELCH, tasks
from qdsweep.analysis.tables.confirmed import MARKED
from qdsweep.analysis.tables.group_table import (
    BUDGET_UNITS,
    budget_ranges,
    decimals_of,
    format_metric,
)
from qdsweep.analysis.tables.possible_best import PossibleBest, possible_best
from qdsweep.metrics import Metric
from qdsweep.records.dependencies import OUTDATED
from qdsweep.search.levels import search_cost, whole_budget
from qdsweep.text import (
    common_decimals,
    core_time,
    listed,
    mean_and_error,
    number,
    plural,
    seeds_text,
)

if TYPE_CHECKING:
    import pandas as pd

_MAX_SCORE_SCALES = 6  # more are only in the tables
MAX_RIVALS = 3  # groups that the best one is compared with, by name


def headline(data: SweepData) -> str:
    """Returns the first sentences of the page."""
    plan = data.plan
    done = largest_budgets(data.with_results)
    text = _amounts(data, done)
    partial = int((data.summary["status"] == "partial").sum())
    if partial:
        verb = "belongs" if partial == 1 else "belong"
        text += (
            f" {plural(partial, 'row')} {verb} to unfinished runs and {_have(partial)} the current"
            " values."
        )
    outdated = int((data.summary["status"] == OUTDATED).sum())
    if outdated:
        text += (
            f" {plural(outdated, 'row')} {_are(outdated)} outdated, because code that the runs used"
            " has changed since: their groups are not tested."
        )
    missing = len(data.summary) - len(data.with_results)
    if missing:
        text += (
            f" {plural(missing, 'row')} {_have(missing)} no results and {_are(missing)} left out."
        )
    if done["obj_max"].isna().all():
        return f"{text} All archives are empty."
    confirmed = _confirmed(data)
    text += confirmed
    the = "On the sweep's own seeds, the" if confirmed else "The"
    scales = _ranked(data)
    best = [data.best(groups, 1)[0] for groups in scales.values()]
    if 0 < len(best) <= _MAX_SCORE_SCALES:
        metric = _compared(data)
        texts = dict(zip(data.table["group"], format_metric(data.table, metric), strict=True))
        verb = "is that" if len(best) == 1 else "are those"
        means = f"mean {metric.phrase}" if len(best) == 1 else f"means of the {metric.phrase}"
        scores = listed([_score(data, metric, group, texts[group]) for group in best])
        text += f" {the} {data.rank.extreme} {means} {verb} of {scores}."
        sure = tested_scales(plan, scales)
        if sure:
            best = [group for scale, group in zip(scales, best, strict=True) if scale in sure]
            text += _tested(data, sure, best)
    return text + noise_text(plan, done, data.table)


def _amounts(data: SweepData, done: "pd.DataFrame") -> str:
    """Returns sentences on the number of runs and their cost; `done`: the row of each run."""
    plan = data.plan
    swept = {name.split(".")[0] for name in plan.columns}
    several = swept & {"experiment", "domain"}  # the groups say which
    of = "" if several else f" of {data.called.labels.get(plan.experiment, plan.experiment)}"
    groups = len(plan.groups.keys() - plan.imported_groups)
    is_other = done["group"].isin(plan.imported_groups)
    own, others = done[~is_other], done[is_other]
    runs = len({row.run for row in plan.rows if not row.imported})
    text = (
        f"{plural(runs, 'run')}{of}"
        f"{f' in {groups} groups' if groups > 1 else ''},"
        f" {number(own['evaluations'].sum())} evaluations, {core_time(own['core_seconds'].sum())}"
    )
    if len(others):
        text += (
            f", and {plural(len(others), 'imported run')} of"
            f" {number(others['evaluations'].sum())} evaluations"
        )
    if data.search is None:
        return f"{text}."
    text += (
        f". {'It is the run' if runs == 1 else 'They are the runs'} of the"
        f" {plural(groups, 'finalist')} of a search among {plural(data.search.count, 'setting')},"
        f" which used {number(search_cost(plan.levels))} {plan.unit} in all"
    )
    if data.stage_table("confirmed") is not None:
        held_out = len(data.confirming) * whole_budget(plan.levels)
        text += f", and the held-out runs {number(held_out)}"
    return f"{text}."


def _ranked(tables: SweepTables) -> dict[str, list[str]]:
    """Returns the scales of several groups that have the metric that ranks, with these groups."""
    scales = {
        scale: [g for g in groups if tables.counts([g])[0] and g not in tables.plan.untested]
        for scale, groups in ranked_scales(tables.plan, tables.score_scales).items()
    }
    return {scale: groups for scale, groups in scales.items() if len(groups) > 1}


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _compared(tables: SweepTables) -> Metric:
    """Returns the metric that ranks, as the table of groups has it, if all groups have that."""
    metrics = {
        compared_metric(tables.rank, tables.summary, groups)
        for groups in tables.score_scales.values()
    }
    return metrics.pop() if len(metrics) == 1 else tables.rank.always


def _score(tables: SweepTables, metric: Metric, group: str, text: str) -> str:
    """`text`: mean and interval as the table has them, with as many decimals."""
    n = int(tables.table.set_index("group")[f"{metric.column}_n"][group])
    interval = ", 95 % interval" if n >= MIN_SEEDS else ""
    return f"{group} ({text}{' %' if metric.percent else ''}{interval}, {plural(n, 'seed')})"


def _tested(tables: SweepTables, scales: dict[str, list[str]], best: list[str]) -> str:
    """Returns sentences on which groups may be the best of their scales.

    `best`: the group with the best mean of each of `scales`.
    """
    counts = tables.counts([group for groups in scales.values() for group in groups])
    every = tasks(tables.plan, tables.summary, scales)
    verdicts = possible_best(
        [(runs, metric.sign) for _, _, metric, runs in every], tables.plan.tests
    )
    test = "Welch's t-tests" if tables.plan.tests == WELCH else "t-tests of runs of one seed"
    together = " for all tasks together" if len(best) > 1 else ""
    test = f"95 %{together}, one-sided {test}"
    tested = {
        s: g for (s, g), verdict in zip(scales.items(), verdicts, strict=True) if verdict.tested
    }
    ranges = dict.fromkeys(budget_ranges(tables.plan, tables.table, tested).values())
    if ranges:
        unit = BUDGET_UNITS[tables.plan.counted]
        test += f"; budgets differ {listed(list(ranges), most=3)} {unit}"
    if not tested:
        text = " Nothing is tested."
        if len(best) == 1 and sum(n >= ENOUGH_SEEDS for n in counts) > 1:
            text = " Nothing is tested, because the groups share runs."
    elif len(best) > 1:
        text = _several(verdicts, best, test)
    else:
        text = f" {_verdict(verdicts[0], best[0], 'lower' if tables.rank.smaller else 'higher')}"
        text += f" ({test})."
    clumps = [group for verdict in verdicts for group in verdict.clumps]
    if clumps:
        text += (
            f" The runs of {_named(clumps)} are two clumps, with a gap of more than half of their"
            " range: no test of means holds there."
        )
    return f"{text} {SEEDS_RULE}" if min(counts) < ENOUGH_SEEDS else text


def _verdict(verdict: PossibleBest, best: str, higher: str) -> str:
    """Returns a sentence without its end; `best`: the group with the best mean."""
    marked = [group for group in verdict.tested if group in verdict.marked]
    if verdict.alone == best:
        rivals = [group for group in verdict.tested if group != best]
        return f"It is significantly {higher} than that of {_named(rivals)}"
    if verdict.alone:  # the best mean has too few seeds
        return f"Of the groups that are tested, {verdict.alone} is significantly {higher}"
    if len(marked) == len(verdict.tested):
        return f"Each of the {len(marked)} groups that are tested may be the best"
    return f"The best group is among {_named(marked)}"


def _named(groups: list[str]) -> str:
    if len(groups) > MAX_RIVALS:
        groups = [*groups[: MAX_RIVALS - 1], f"{len(groups) - MAX_RIVALS + 1} others"]
    return listed(groups)


def _several(verdicts: list[PossibleBest], best: list[str], test: str) -> str:
    """Returns sentences on the groups with the best means of several scales."""
    text = ""
    pairs = list(zip(verdicts, best, strict=True))
    clear = [group for verdict, group in pairs if verdict.alone == group]
    close = [group for verdict, group in pairs if verdict.tested and verdict.alone != group]
    untested = [group for verdict, group in pairs if not verdict.tested]
    if clear:
        verb = "differs" if len(clear) == 1 else "differ"
        text = f" {listed(clear)} {verb} significantly from all others of the same task ({test})."
    if close:
        end = "." if clear else f" ({test})."
        text += f" For the task of {listed(close)}, other groups may be the best{end}"
    if untested:
        text += f" Nothing is tested for the task of {listed(untested)}."
    return text


def _confirmed(data: SweepData) -> str:
    """Returns sentences on the winners on held-out seeds; empty if none was run again."""
    confirmed = data.stage_table("confirmed")
    if confirmed is None:
        return ""
    confirmed = data.called.dressed(confirmed).sort_index()  # the winner first
    score_scales = [rows for _, rows in confirmed.groupby("scale", sort=False)]
    if not 0 < len(score_scales) <= _MAX_SCORE_SCALES:
        return ""
    seeds = seeds_text(row["values"]["seed"] for row in data.confirming)
    held = "; ".join(_held(data, rows) for rows in score_scales)
    return f" On the held-out {seeds}, {held}.{_among(score_scales)}"


def _held(data: SweepData, rows: "pd.DataFrame") -> str:
    """Returns the held-out mean of the winner of one scale, which is its first row."""
    metric, winner = data.metric(rows["metric"].iloc[0]), rows.iloc[0]
    kept = data.search is not None and len(data.plan.groups) == 1  # no single seed chose it
    which = "the setting that the search kept" if kept else "the best on the sweep's own seeds"
    name, n = f"{winner['group']}, {which},", int(winner["unseen_n"])
    if not n:
        return f"{name} has no results"
    decimals = common_decimals([winner["unseen_mean"]], [winner["unseen_se"]])
    half = half_width(winner["unseen_se"], n)
    mean = mean_and_error(winner["unseen_mean"], half, decimals)
    own = number(winner["sweep_mean"], decimals_of(data.table, metric))
    unit = " %" if metric.percent else ""
    interval = ", 95 % interval" if n >= MIN_SEEDS else ""
    return (
        f"{name} has a mean {metric.phrase} of {mean}{unit} ({plural(n, 'seed')}{interval}; {own}"
        f"{unit} on the sweep's own seeds)"
    )


def _among(score_scales: list["pd.DataFrame"]) -> str:
    """Returns sentences on which of several winners may be the best on the held-out seeds."""
    text = ""
    for rows in score_scales:
        tested = rows[rows[MARKED].notna()] if MARKED in rows else rows[:0]
        if len(tested) < 2:
            continue
        marked = list(tested.loc[tested[MARKED].eq(True), "group"])
        if len(marked) == 1:
            text += f" There, {marked[0]} is significantly better than the other winners."
        else:
            text += f" There, the best of the winners is among {_named(marked)}."
    return text
