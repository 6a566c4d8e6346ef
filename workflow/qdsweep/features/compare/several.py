"""The tables of several sweeps as one, in memory."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from qdsweep.analysis.columns import tabled
from qdsweep.analysis.legend import group_names
from qdsweep.analysis.noise import noise_text, tested_scales
from qdsweep.analysis.selection import largest_budgets, score_scales_of
from qdsweep.analysis.sheet import Sheet
from qdsweep.analysis.tables.aggregate import noisy_plan, read_runs, summary_of
from qdsweep.analysis.tables.comparisons import comparisons
from qdsweep.analysis.tables.group_table import group_sheet, group_table
from qdsweep.features.compare.merged import Merged, merge_sweeps
from qdsweep.records.paths import Results
from qdsweep.records.plan import Plan
from qdsweep.text import listed

if TYPE_CHECKING:
    import pandas as pd


class Compared(NamedTuple):
    """Several sweeps as one, for a reader.

    Attributes:
        groups: The table of groups.
        comparisons: The tests between groups: a row for each pair.
        notes: Sentences on runs that are left out, shared or not compared.
    """

    groups: Sheet
    comparisons: Sheet
    notes: list[str]


def compare_sweeps(results: Results, names: Sequence[str]) -> Compared:
    """Compares the finished runs of sweeps; it writes no file but an index of these runs.

    Args:
        results: The folder results/.
        names: The sweeps.

    Raises:
        BadInput: See `merge`; or a file of a run is damaged.
    """
    merged = merge_sweeps(results, names)
    plan = tabled(Plan.of(merged.plan), results)
    sweep = results.comparison(plan.name)
    read = read_runs(plan, sweep, results.runs)
    plan = noisy_plan(plan, read)
    summary = summary_of(plan, read)
    table, called = group_table(plan, summary), group_names(plan)
    dressed = called.dressed_plan(plan), called.dressed(summary), called.dressed(table)
    scales = tested_scales(plan, score_scales_of(summary, called.names))
    tests, _ = comparisons(plan, summary, scales, called)
    notes = [*merged.notes, *sentence_apart(merged, summary)]
    if noise := noise_text(plan, largest_budgets(summary)):
        notes.append(noise.strip())
    return Compared(group_sheet(*dressed), tests, notes)


def sentence_apart(merged: Merged, summary: "pd.DataFrame") -> list[str]:
    """Returns a sentence on the sweeps whose runs compare with none of another sweep."""
    scale_of = dict(zip(summary["id"], summary["scale"], strict=True))
    scales = {name: {scale_of[run] for run in runs} for name, runs in merged.runs.items()}
    alone = [
        name
        for name, own in scales.items()
        if all(own.isdisjoint(of) for other, of in scales.items() if other != name)
    ]
    if not alone:
        return []
    return [
        f"The runs of {listed(alone)} do not compare with runs of another sweep: the domain, the"
        " archive or the QD-score offset differs."
    ]
