"""The table of the differences between groups: all pairs of those that compare."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from qdsweep.analysis.labels import Called
from qdsweep.analysis.selection import compared_metric, in_percent
from qdsweep.analysis.tables.pair_rows import (
    DATA,
    HEADINGS,
    Records,
    cannot_decide,
    few_text,
    pair_cells,
    pair_records,
)
from qdsweep.analysis.tables.pairs import Runs, compare, runs_of
from qdsweep.analysis.tables.sheet import Cell, Sheet, text_cell, write_sheet
from qdsweep.analysis.tables.statistics import MIN_SEEDS
from qdsweep.metrics import Metric
from qdsweep.records.sweep_dir import SweepDir

if TYPE_CHECKING:
    import pandas as pd

# More groups of a scale than these, and the table shows the best ones: all pairs are tested.
SHOWN_GROUPS = 12


def write_comparisons(
    sweep_dir: Path,
    rank: Metric,
    summary: "pd.DataFrame",
    score_scales: Mapping[str, list[str]],
    called: Called,
) -> None:
    """Writes `tables/comparisons`: the tests between the groups of each scale."""
    import pandas as pd

    records: Records = []
    rows: list[list[Cell]] = []
    most, left_out, few = 0, False, [0]
    for scale, task, metric, groups in tasks(rank, summary, score_scales):
        pairs = compare(groups, metric.sign)
        shown = pairs.keep(np.maximum(pairs.first, pairs.second) < SHOWN_GROUPS)
        listed = pair_records(groups, shown, metric.sign)
        start = [text_cell(called.scale(task))] if task else []
        rows += [[*start, *cells] for cells in pair_cells(listed, called.label)]
        records += [{"scale": scale, "metric": metric.column, **record} for record in listed]
        most = max(most, len(pairs.holm))
        left_out = left_out or len(shown.holm) < len(pairs.holm)
        few += sorted(len(runs.scores) for runs in groups.values())[-2:-1]
    heads = ["Task"] if len(score_scales) > 1 else []
    note = _pairs_note(rank, left_out) + few_text(records, most) if rows else _none_note(max(few))
    sheet = Sheet(
        "comparisons",
        "Differences between groups",
        note,
        [*heads, *HEADINGS],
        len(heads) + 2,
        rows,
    )
    data = pd.DataFrame(records, columns=["scale", "metric", *DATA])
    write_sheet(SweepDir(sweep_dir).tables, sheet, data)


def tasks(
    rank: Metric, summary: "pd.DataFrame", score_scales: Mapping[str, list[str]]
) -> list[tuple[str, str, Metric, dict[str, Runs]]]:
    """Returns each scale, its short name, the metric it compares in, and its groups' results.

    The short name is empty where there is one scale alone.
    """
    summary = in_percent(summary)
    names = short_names(list(score_scales)) if len(score_scales) > 1 else [""] * len(score_scales)
    found = []
    for (scale, groups), name in zip(score_scales.items(), names, strict=True):
        metric = compared_metric(rank, summary, groups)
        of_metric = runs_of(summary, metric.column)
        there = {group: of_metric[group] for group in groups if group in of_metric}
        found.append((scale, name, metric, there))
    return found


def tests_text(rank: Metric, family: str) -> str:
    """Returns what pairs are ordered by, and how they are tested; `family`: corrected for it."""
    without = f" (of the {rank.always.phrase} where the archive has no cells)"
    return (
        f"by the difference of the mean {rank.phrase}{without if rank.instead else ''}. p: Welch's"
        f" t test, two-sided; corrected by Holm's method for {family}; the Mann-Whitney U test, not"
        " corrected. P(higher > lower): probability that a run of the one is"
        f" {'worse' if rank.smaller else 'better'} than a run of the other, with its 95 % interval."
        " The unit of replication is the seed; groups of fewer than"
        f" {MIN_SEEDS} are not tested."
    )


def _pairs_note(rank: Metric, left_out: bool) -> str:
    family = "all pairs of the domain, archive and offset"
    text = f"Every pair of groups with comparable QD scores, {tests_text(rank, family)}"
    if left_out:
        text += (
            f" Shown: the {SHOWN_GROUPS} groups with the {rank.extreme} means; all are corrected"
            " for."
        )
    return text


def _none_note(seeds: int) -> str:
    """`seeds`: of the group with the second most ones of a scale, so of the best pair."""
    text = (
        f"Nothing can be tested: that takes two groups of at least {MIN_SEEDS} seeds with runs"
        " of their own and comparable QD scores (one domain, archive and offset)."
    )
    return text + (cannot_decide(seeds, seeds, 1) if 0 < seeds < MIN_SEEDS else "")


def short_names(score_scales: list[str]) -> list[str]:
    """Returns score scales in so many of their parts (domain, archive, ...) that all differ."""
    parts = [scale.split("; ") for scale in score_scales]
    for count in range(1, max(map(len, parts), default=1) + 1):
        names = ["; ".join(part[:count]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return score_scales
