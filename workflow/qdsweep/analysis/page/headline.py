"""The first sentences of the page: what was swept, and what came out."""

from typing import TYPE_CHECKING

from qdsweep.analysis.data import SweepData
from qdsweep.analysis.selection import Tables, compared_metric
from qdsweep.analysis.statistics import MIN_SEEDS
from qdsweep.analysis.tables.groups import best_and_tied, format_metric
from qdsweep.metrics import Metric
from qdsweep.search.levels import count_candidates, search_cost
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

MAX_SCORE_SCALES = 6  # more are only in the tables


def headline(data: SweepData) -> str:
    """Returns the first sentences of the page."""
    plan = data.plan
    done = data.with_results.drop_duplicates("id")
    swept = {name.split(".")[0] for name in plan.columns}
    several = swept & {"experiment", "domain"}  # the groups say which
    of = "" if several else f" of {data.called.labels.get(plan.experiment, plan.experiment)}"
    text = (
        f"{plural(len({row.run for row in plan.rows}), 'run')}{of} in "
        f"{plural(len(plan.groups), 'group')}, {number(done['evaluations'].sum())} evaluations, "
        f"{core_time(done['core_seconds'].sum())}."
    )
    if plan.levels:
        text += (
            f" They are the finalists of a search among {count_candidates(plan.levels)} settings,"
            f" which used {number(search_cost(plan.levels))} {plan.unit} in all."
        )
    partial = int((data.summary["status"] == "partial").sum())
    if partial:
        verb = "belongs" if partial == 1 else "belong"
        text += (
            f" {plural(partial, 'row')} {verb} to unfinished runs and {_have(partial)} the current"
            " values."
        )
    missing = len(data.summary) - len(data.with_results)
    if missing:
        text += (
            f" {plural(missing, 'row')} {_have(missing)} no results and {_are(missing)} left out."
        )
    others = {row.run for row in plan.rows if row.imported}
    if others:
        text += f" {plural(len(others), 'run')} {_are(len(others))} imported."
    best = [data.best(groups, 1)[0] for groups in data.score_scales.values() if len(groups) > 1]
    if 0 < len(best) <= MAX_SCORE_SCALES:
        metric = _compared(data)
        texts = dict(zip(data.table["group"], format_metric(data.table, metric), strict=True))
        verb = "is that" if len(best) == 1 else "are those"
        means = f"mean {metric.phrase}" if len(best) == 1 else f"means of the {metric.phrase}"
        scores = listed([_score(data, metric, group, texts[group]) for group in best])
        text += f" The {data.rank.extreme} {means} {verb} of {scores}"
        text += f"{_not_told(data, best)}."
    text += _confirmed(data)
    if done["scale"].map(lambda scale: scale.partition(";")[0]).nunique() == 1:  # one task
        top = done.loc[done["obj_max"].idxmax()]
        text += f" The best objective of all runs is {number(top['obj_max'], 2)} ({top['group']})."
    return text


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _compared(tables: Tables) -> Metric:
    """Returns the metric that ranks, as the table of groups has it, if all groups have that."""
    metrics = {
        compared_metric(tables.rank, tables.summary, groups)
        for groups in tables.score_scales.values()
    }
    return metrics.pop() if len(metrics) == 1 else tables.rank.always


def _score(tables: Tables, metric: Metric, group: str, text: str) -> str:
    """`text`: mean and standard error as the table has them, with as many decimals."""
    n = tables.table.set_index("group")[f"{metric.column}_n"][group]
    return f"{group} ({text}{' %' if metric.percent else ''}, {plural(int(n), 'seed')})"


def _not_told(tables: Tables, best: list[str]) -> str:
    """Returns which of the best groups do not differ significantly from others."""
    if min(tables.counts(best)) < MIN_SEEDS:
        few = plural(min(tables.counts(best)), "seed")
        return f". With {few} per group no test is possible"
    _, tied = best_and_tied(
        tables.rank, tables.metrics, tables.summary, tables.table, tables.score_scales
    )
    ranked = {metric.column for metric in (tables.rank, tables.rank.always)}
    scores = {group for metric, group in tied if metric in ranked}
    doubtful = [
        b for b in best if scores & set(next(s for s in tables.score_scales.values() if b in s))
    ]
    if not doubtful:
        return ""
    which = "" if len(best) == 1 else f" ({listed(doubtful)})"
    return (
        f", not significantly different from others{which} (5 %, Welch's t-test with Holm's"
        " correction)"
    )


def _confirmed(data: SweepData) -> str:
    """Returns a sentence on the winners on held-out seeds; empty if none was run again."""
    confirmed = data.stage_table("confirmed")
    if confirmed is None:
        return ""
    confirmed = data.called.dressed(confirmed).dropna(subset=["unseen_mean"])
    score_scales = [rows for _, rows in confirmed.groupby("scale", sort=False)]
    if not 0 < len(score_scales) <= MAX_SCORE_SCALES:
        return ""
    seeds = seeds_text(row["values"]["seed"] for row in data.confirming)
    return f" On the held-out {seeds}, {'; '.join(_held(data, rows) for rows in score_scales)}."


def _held(tables: Tables, rows: "pd.DataFrame") -> str:
    """Returns how the winners of one scale did."""
    metric = tables.metric(rows["metric"].iloc[0])
    scores = (metric.sign * rows[f"{kind}_mean"] for kind in ("unseen", "sweep"))
    best, chosen = (rows.loc[score.idxmax()] for score in scores)
    decimals = common_decimals(rows["unseen_mean"], rows["unseen_se"])
    unseen, own = (
        mean_and_error(best[f"{kind}_mean"], best[f"{kind}_se"], decimals)
        for kind in ("unseen", "sweep")
    )
    unit = " %" if metric.percent else ""
    text = (
        f"{best['group']} has a mean {metric.phrase} of {unseen}{unit}"
        f" ({plural(int(best['unseen_n']), 'seed')}), compared with {own}{unit} on the seeds that"
        " selected it"
    )
    if len(rows) == 1:
        return text
    if best["group"] == chosen["group"]:
        return f"{text}, and is still the best of the {len(rows)} winners"
    return f"{text}, and replaces {chosen['group']} as the best of the {len(rows)} winners"
