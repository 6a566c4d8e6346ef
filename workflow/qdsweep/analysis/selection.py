"""What the figures and the report read of a sweep: its tables, and which groups to show."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from qdsweep.analysis.files import require
from qdsweep.analysis.text import number, plural

if TYPE_CHECKING:
    import pandas as pd

HAS_RESULTS = ("finished", "partial")


@dataclass(frozen=True)
class Tables:
    """The tables of a sweep that `aggregate` wrote.

    Attributes:
        summary: A row a run.
        table: A row a group, without the groups that have no results.
        curves: Mean and standard error of each group over evaluations.
        scales: Groups that may share a QD-score axis: scale in words -> groups.
        position: Place of each group in the sweep, which fixes its colour in every figure.
    """

    summary: "pd.DataFrame"
    table: "pd.DataFrame"
    curves: "pd.DataFrame"
    scales: dict[str, list[str]]
    position: dict[str, int]

    @property
    def with_results(self) -> "pd.DataFrame":
        """The rows of `summary` that have results."""
        return self.summary[self.summary["status"].isin(HAS_RESULTS)]

    def best(self, groups: list[str], limit: int) -> list[str]:
        """Returns the `limit` groups with the highest mean QD score, in the sweep's order."""
        scores = self.table.set_index("group")["qd_score_mean"]
        best = sorted(groups, key=lambda group: -scores[group])[:limit]
        return [group for group in groups if group in best]

    def median_run(self, group: str) -> "pd.Series":
        """Returns the row of the run with the group's (lower) median QD score."""
        runs = self.with_results[self.with_results["group"] == group]
        runs = runs.drop_duplicates("id").sort_values("qd_score", kind="stable")
        return runs.iloc[(len(runs) - 1) // 2]

    def counts(self, groups: list[str]) -> list[int]:
        """Returns the number of runs behind the mean of each of `groups`."""
        n = self.table.set_index("group")["qd_score_n"]
        return [int(n[group]) for group in groups]


def read_tables(sweep_dir: Path) -> Tables:
    """Reads the tables of a sweep.

    Raises:
        BadInput: `aggregate` has not written them yet.
    """
    import pandas as pd

    remedy = "Run `qdsweep aggregate` (or `snakemake`) first."
    # Group labels and ids stay text, also one that looks like a number or like "null".
    text = {"group": str, "id": str, "scale": str}
    summary, table, curves = (
        pd.read_csv(
            require(sweep_dir / f"{name}.csv", remedy),
            dtype=text,
            keep_default_na=False,
            na_values=[""],
        )
        for name in ("summary", "table", "curves")
    )
    table = table[table["qd_score_n"] > 0]
    done = summary[summary["status"].isin(HAS_RESULTS)]
    scale_of = done.drop_duplicates("group").set_index("group")["scale"]
    scales: dict[str, list[str]] = {}
    for group in table["group"]:
        scales.setdefault(scale_of[group], []).append(group)
    position = {group: i for i, group in enumerate(table["group"])}
    return Tables(summary, table, curves, scales, position)


def band_text(counts: list[int]) -> str:
    """Returns what a figure's lines and bands are, from the number of seeds of each group."""
    if max(counts) == 1:
        return "one seed each, no band"
    if min(counts) == max(counts):
        return f"mean ± standard error over {plural(counts[0], 'seed')}"
    alone = ", no band for one" if min(counts) == 1 else ""
    return f"mean ± standard error over {min(counts)} to {max(counts)} seeds{alone}"


def shown_text(tables: Tables, shown: dict[str, list[str]]) -> str:
    """Returns what a figure leaves out, nothing if that is nothing.

    Args:
        tables: The sweep's tables.
        shown: Scale in words -> groups in the figure.
    """
    text = ""
    for scale, groups in shown.items():
        if len(groups) < len(tables.scales[scale]):
            where = "" if len(tables.scales) == 1 else f" of {scale}"
            text += (
                f" Shown: the {len(groups)} of {len(tables.scales[scale])} groups{where}"
                " with the highest final mean QD score."
            )
    left_out = [len(groups) for scale, groups in tables.scales.items() if scale not in shown]
    if left_out:
        text += (
            f" Not shown: {plural(sum(left_out), 'group')} of another domain, archive or offset."
        )
    return text


def budget_text(run: "pd.Series") -> str:
    """Returns how far a run's final archive went, and its row's budget if that is less."""
    total, budget = int(run["total_evaluations"]), int(run["evaluations"])
    if total > budget:
        return f"at {number(total)} evaluations, not {number(budget)}"
    return f"at {number(total)} evaluations"
