"""The section of the page on a search: its plan, its winner, and warnings."""

from dataclasses import dataclass

from qdsweep.analysis.data import SweepData
from qdsweep.analysis.figures.search_curves import warnings as rank_warnings
from qdsweep.analysis.noise import LUCKY
from qdsweep.analysis.page.descriptions import cite
from qdsweep.analysis.search_progress import Searched, ancestors, level_text
from qdsweep.analysis.statistics import half_width
from qdsweep.analysis.tables.confirmed import overestimation
from qdsweep.config.model import value_text
from qdsweep.config.search import EARLIEST, Search
from qdsweep.search.levels import search_cost, share_of_whole
from qdsweep.sweep.drawn import DrawnSource
from qdsweep.text import (
    common_decimals,
    exact,
    listed,
    mean_and_error,
    number,
    plural,
    seeds_text,
    with_interval,
)

_NAMED = 5  # settings that failed, one by one
_END = 0.05  # the share of a drawn range that counts as its end
_DRAWS = {
    "random": ("drawn at random", "bergstra2012random"),
    "sobol": ("drawn from a scrambled Sobol sequence", "sobol1967distribution"),
    "halton": ("drawn from a scrambled Halton sequence", "halton1960efficiency"),
    "lhs": ("of a Latin hypercube", "mckay1979comparison"),
    "tpe": (
        "proposed in batches by the tree-structured Parzen estimator",
        "bergstra2011algorithms",
    ),
}


@dataclass(frozen=True)
class SearchSection:
    """The section of the page on a search.

    Attributes:
        text: Sentences.
        warnings: Reasons to doubt the results, a sentence or two each.
    """

    text: list[str]
    warnings: list[str]


def search_section(data: SweepData) -> SearchSection | None:
    """Returns the section of a search; None where the sweep has none."""
    search, keys = data.search, data.plan.search
    if search is None or keys is None or not search.placed:
        return None
    return SearchSection(
        [plan_text(search, keys), winner_text(search), overestimation_text(data, search)],
        [
            *_lucky(data),
            *_edges(search),
            *_early(keys),
            *rank_warnings(search),
            *_failed(search),
        ],
    )


def _lucky(data: SweepData) -> list[str]:
    """Returns a sentence where evaluations depend on their seed."""
    if LUCKY not in data.plan.noise.values():
        return []
    return [
        "Evaluations of this task depend on their seed. The search decided by its own scores, which"
        " count lucky evaluations."
    ]


def plan_text(search: Searched, keys: Search) -> str:
    """Returns the plan of a search, and its cost relative to the whole budget for every setting."""
    first, how, count = search.levels[0], _how(keys), len(search.last)
    spent = f"The search used {number(search_cost(search.levels))} {search.unit} in all"
    if search.is_pbt:
        return (
            f"{how} of {plural(first.places, 'member')} over {len(search.levels)} generations of"
            f" {number(first.budget)} {search.unit}. {spent}."
        )
    text = f"{how} of {plural(count, 'setting')}"
    if keys.halving is None:
        text += f": {len(search.levels)} batches of {first.places}"
    elif len(search.levels) <= 4:
        steps = [
            f"{number(level.places)} at {number(level.budget)} {search.unit} each"
            for level in search.levels
        ]
        text += f": {listed(steps)}"
    share = share_of_whole(search.levels, count)
    if share != 1:
        spent += (
            f", {number(100 * share)} % of the cost of the whole budget for every setting with one"
            " seed each"
        )
    return f"{text}. {spent}."


def winner_text(search: Searched) -> str:
    """Returns the best setting and its lead."""
    if not search.finalists:
        return "No setting reached the whole budget: all of them failed."
    best, *others = search.finalists
    seeds = [seed for seed in best.level.seeds if seed]
    of = f", the mean over {seeds_text(seeds)}" if len(seeds) > 1 else ""
    if search.is_pbt:
        return (
            f"The best at the end has a {search.metric.phrase} of {_score(search, best.score)}{of}."
            f" Its schedule: {best_schedule_text(search)}."
        )
    text = (
        f"The best at the end is {search.label(best)}, with a {search.metric.phrase} of"
        f" {_score(search, best.score)}{of}"
    )
    if others:
        text += f"; the next one, {search.label(others[0])}, has {_score(search, others[0].score)}"
    return f"{text}."


def best_schedule_text(search: Searched) -> str:
    """Returns the values of the best of a population, and when they changed."""
    parts, before, start = [], "", 0
    for trial in ancestors(search):
        label = search.label(trial)
        if label != before:
            parts.append(f"from {number(start)} {search.unit} on {label}" if before else label)
        before, start = label, trial.level.budget
    return "; ".join(parts)


def overestimation_text(data: SweepData, search: Searched) -> str:
    """Returns the winner's score on held-out seeds and its difference, if that is known."""
    confirmed = data.stage_table("confirmed")
    if confirmed is None:
        return (
            f"The best was selected from {plural(len(search.last), 'setting')}, so its score tends"
            " to be too high. To measure by how much, run it again with held-out seeds: add"
            " the key confirm, such as {top: 1, seeds: [101, 110]}, to the sweep file."
        )
    if confirmed.empty or not confirmed["unseen_n"].iloc[0]:
        return ""
    row = confirmed.iloc[0]
    seeds = seeds_text(run["values"]["seed"] for run in data.confirming)
    decimals = common_decimals([row["unseen_mean"]], [row["unseen_se"]])
    half = half_width(row["unseen_se"], row["unseen_n"])
    unseen = mean_and_error(row["unseen_mean"], half, decimals)
    lost = overestimation(row)
    shown = with_interval(lost.value, lost.low, lost.high, min(decimals, search.decimals))
    return (
        f"On the held-out {seeds} it has {unseen} (mean, 95 % interval). On the sweep's own"
        f" seeds, it has {number(row['sweep_mean'], search.decimals)}: a difference of {shown}."
    )


def how_searched(data: SweepData) -> str:
    """Returns a sentence on the search for the methods paragraph; empty without a search."""
    search, keys = data.search, data.plan.search
    if search is None or keys is None or not search.placed:
        return ""
    what, paper = _DRAWS[keys.sampling]
    drawn = "sample" in search.placed[0].values
    of = (
        f"settings {what}{cite([paper])}"
        if drawn or keys.sampling == "tpe"
        else "settings of a grid"
    )
    text = f"Settings were chosen by {_cited(search, keys)} of {len(search.last)} {of}"
    if search.is_pbt:
        first = search.levels[0]
        text = (
            f"Settings were changed during the runs by {_cited(search, keys)} with {first.places}"
            f" members, first {what}{cite([paper])}, and {len(search.levels)} generations of"
            f" {number(first.budget)} {search.unit}"
        )
    elif len(search.levels) <= 4:
        steps = [
            f"{level.places} had {number(level.budget)} {search.unit} and"
            f" {plural(len(level.seeds), 'seed')}"
            for level in search.levels
        ]
        text += f" ({'; '.join(steps)})"
    where = f"ranked by the {search.metric.phrase}"
    failed = len({trial.setting for trial in search.placed if trial.failed is not None})
    if failed:
        where += f"; {plural(failed, 'setting')} failed and ranked last"
    total = number(search_cost(search.levels))
    return f"{text}, {where}. The search used {total} {search.unit} in all."


def _how(keys: Search) -> str:
    if keys.pbt is not None:
        return "Population-based training"
    tpe = "TPE in batches" if keys.sampling == "tpe" else ""
    halving = keys.halving
    if halving is None:
        return tpe
    name = "Hyperband" if halving.num_brackets > 1 else "successive halving"
    return f"{tpe} and {name}" if tpe else name[0].upper() + name[1:]


def _cited(search: Searched, keys: Search) -> str:
    if keys.pbt is not None:
        return f"population-based training{cite(['jaderberg2017population'])}"
    halving = keys.halving
    if halving is None:
        return "a sequential search in batches"
    if halving.num_brackets > 1:
        papers = ["li2018hyperband", *(["falkner2018bohb"] if keys.sampling == "tpe" else [])]
        return f"Hyperband{cite(papers)}"
    papers = ["karnin2013almost", "jamieson2016nonstochastic"]
    if any(level.block for level in search.levels):  # decided on the way, as ASHA does it
        papers.append("li2020system")
    return f"successive halving{cite(papers)}"


def _score(search: Searched, score: float | None) -> str:
    unit = " %" if search.metric.percent else ""
    return f"{number(search.shown(score or 0.0), search.decimals)}{unit}"


def _edges(search: Searched) -> list[str]:
    """Returns a warning for each parameter whose best value is at an end of the swept values."""
    warnings, pairs = [], []
    for name in search.names if search.finalists else ():
        text = value_text(search.finalists[0].values[name])
        swept = {value_text(trial.values[name]) for trial in search.placed} - {""}
        edge = _edge(text, swept, search.drawn.get(name))
        if edge:
            called = search.name(name)
            warnings.append(
                f"The best setting has {called} {exact(float(text))}, which is at {edge}. Better"
                f" values may be outside: widen {called}."
            )
        if len(_numbers(swept)) == 2:
            pairs.append(search.name(name))
    if warnings and pairs:  # each of two values is at an end, which is no reason for a warning
        warnings.append(f"Of {listed(pairs)}, only two values were swept, so each is at an end.")
    return warnings


def _numbers(swept: set[str]) -> list[float]:
    """Returns the swept values in ascending order; nothing where they are not all numbers."""
    try:
        return sorted(map(float, swept))
    except ValueError:
        return []


def _edge(text: str, swept: set[str], source: DrawnSource | None) -> str:
    """Returns at which end of the swept values a value is; empty where it is at none.

    Args:
        text: The value.
        swept: All values.
        source: Where they are drawn from; None where they are listed.
    """
    if len(swept) < 3 or (source is not None and source.kind == "normal"):  # it has no ends
        return ""
    numbers = _numbers(swept)
    if not numbers or not text:
        return ""
    value = float(text)
    low, high, share = numbers[0], numbers[-1], 0.5
    if source is not None and source.kind != "choice":
        low, high, share = *map(float, source.arguments), source.quantile(text)
    is_low, is_high = value == low or share < _END, value == high or share > 1 - _END
    if not (is_low or is_high):
        return ""
    side = "lower" if is_low else "upper"
    return f"the {side} end of the swept values ({exact(low)} to {exact(high)})"


def _early(keys: Search) -> list[str]:
    if keys.halving is None or keys.halving.shares[0] >= EARLIEST:
        return []
    return [
        f"The first rung had {keys.halving.shares[0]} of the budget. So early, small batches and"
        f" large steps often lead, but lose later. A share of {EARLIEST} or more chooses better."
    ]


def _failed(search: Searched) -> list[str]:
    failed = [trial for trial in search.placed if trial.failed is not None]
    failures = {trial.setting: trial for trial in failed}.values()
    if not failures:
        return []
    named = [
        f"{search.label(trial)} at {level_text(trial.level.name)}: {trial.failed}"
        for trial in failures
    ]
    more = [f"{len(named) - _NAMED} more"] if len(named) > _NAMED else []
    verb = "failed and ranks last" if len(failures) == 1 else "failed and rank last"
    return [f"{plural(len(failures), 'setting')} {verb}: {'; '.join(named[:_NAMED] + more)}."]
