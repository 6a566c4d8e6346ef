"""The tables of a sweep as figures and page read them, and the groups that are shown."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from qdsweep.analysis.columns import tabled
from qdsweep.analysis.legend import Block, Marks, plain_marks
from qdsweep.analysis.noise import COLUMN, LUCKY, with_noise
from qdsweep.analysis.stages import maker_of
from qdsweep.analysis.statistics import OF_SEEDS, band_text, fewest_of_band
from qdsweep.files import damaged, read_csv, require
from qdsweep.metrics import (
    BY_NAME,
    DELIVERED_FRACTION,
    NORM_QD_SCORE,
    REEVALUATED,
    Metric,
    curves_of,
)
from qdsweep.records.dependencies import OUTDATED
from qdsweep.records.paths import RunFiles, SweepDir
from qdsweep.records.plan import Plan, read_plan
from qdsweep.records.results import read_config
from qdsweep.text import TIMES, exact, listed, plural

if TYPE_CHECKING:
    import pandas as pd


_HAS_RESULTS = ("finished", "partial")


@dataclass(frozen=True)
class SweepTables:
    """The tables of a sweep that `aggregate` wrote.

    Attributes:
        plan: What was swept, and how it is reported.
        summary: A row for each run.
        table: A row for each group that has results.
        curves: Mean and standard error of each group over evaluations.
        score_scales: Groups that may share a QD-score axis: scale in words -> groups.
        marks: How each group with results looks in every figure.
        series: Group -> its label in a panel of its facet; the group where there is no facet.
        facets: Group -> its facet; empty where there are none.
        seed_curves: The curve of each run, where bands need it.
    """

    plan: Plan
    summary: "pd.DataFrame"
    table: "pd.DataFrame"
    curves: "pd.DataFrame"
    score_scales: dict[str, list[str]]
    marks: Marks
    series: dict[str, str] = field(default_factory=dict)
    facets: dict[str, str] = field(default_factory=dict)
    seed_curves: "pd.DataFrame | None" = None

    @property
    def rank(self) -> Metric:
        """The metric that groups are ranked by."""
        return self.plan.rank

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of the sweep."""
        return self.plan.metrics

    @property
    def drawn(self) -> Metric:
        """The metric whose curve shows how runs come to rank as they do."""
        metric = self.rank.drawn(has_cells=self._has_cells)
        runs = {each.name: self.table[f"{each.column}_n"] for each in curves_of(self.metrics)}
        own = runs[metric.name]
        return metric.course_in({name for name, n in runs.items() if n.any() and (n >= own).all()})

    @property
    def ranked(self) -> Metric:
        """The metric that ranks, in the unit that figures of all its archives have."""
        return self.rank.drawn(has_cells=self._has_cells) if self.rank.curve else self.rank

    @property
    def curve_metrics(self) -> list[Metric]:
        """The metrics of learning curves. Of two that rank alike only one is shown.

        That is the one per cell where all archives have cells and the sweep does not rank by the
        other.
        """
        curves, hidden = curves_of(self.metrics), set()
        for metric in (metric for metric in curves if metric.instead):
            per_cell = self._has_cells and metric.always is not self.rank
            hidden.add(metric.instead if per_cell else metric.name)
        if LUCKY in self.plan.noise.values():
            hidden.add("obj_max")  # the luckiest of all evaluations
        return [metric for metric in curves if metric.name not in hidden]

    @property
    def _has_cells(self) -> bool:
        """Whether all archives have cells."""
        return bool(self.table[f"{NORM_QD_SCORE}_n"].all())

    @property
    def band(self) -> str:
        """What lines and bands of curves are: `figures.band`."""
        return self.plan.figures.band

    def metric(self, name: str) -> Metric:
        """Returns the metric of this name."""
        return next(metric for metric in self.metrics if metric.name == name)

    def of(self, groups: Iterable[str]) -> Self:
        """Returns the tables of only some groups."""
        chosen = list(groups)
        summary, table, curves = (
            rows[rows["group"].isin(chosen)] for rows in (self.summary, self.table, self.curves)
        )
        return replace(
            self,
            summary=summary,
            table=table,
            curves=curves,
            score_scales=score_scales_of(summary, chosen),
            series={group: self.series[group] for group in chosen},
        )

    @property
    def with_results(self) -> "pd.DataFrame":
        """The rows of `summary` that have results."""
        return rows_with_results(self.summary)

    @property
    def panels(self) -> dict[str, list[str]]:
        """Groups that a figure shows on one pair of axes: heading -> groups.

        They are the score scales, each cut into its facets where there are any.
        """
        parts: dict[tuple[str, str], list[str]] = {}
        for scale, groups in self.score_scales.items():
            for group in groups:
                parts.setdefault((self.facets.get(group, ""), scale), []).append(group)
        facets = [facet for facet, _ in parts]

        def heading(facet: str, scale: str) -> str:
            if not facet:
                return scale
            # The facet is enough, unless it has several score scales.
            return facet if facets.count(facet) == 1 else f"{facet}; {scale}"

        return {heading(*part): groups for part, groups in parts.items()}

    @property
    def score_scale_of(self) -> dict[str, str]:
        """Group -> its scale."""
        return {group: scale for scale, groups in self.score_scales.items() for group in groups}

    @property
    def scale_text(self) -> str:
        """The scale as a sentence of a caption if there is only one, which has no heading."""
        return f" {next(iter(self.score_scales))}." if len(self.score_scales) == 1 else ""

    def shown(self, panels: int, lines: int) -> dict[str, list[str]]:
        """Returns the first `panels` panels, each with its best `lines` groups."""
        first = list(self.panels.items())[:panels]
        return {heading: self.best(groups, lines) for heading, groups in first}

    def legends(self, shown: dict[str, list[str]]) -> dict[str, list[Block]]:
        """Returns the legend of each of a figure's panels, by heading."""
        return {heading: self.marks.legend(groups) for heading, groups in shown.items()}

    def best(self, groups: list[str], limit: int) -> list[str]:
        """Returns the `limit` groups with the best mean of the ranking metric, in order.

        Groups without that metric come after all others, by their QD score.
        """
        table = self.table.set_index("group")
        scores = -self.rank.sign * table[f"{self.rank.always.column}_mean"]
        others = -table["qd_score_mean"]
        best = sorted(groups, key=lambda group: (_last(scores[group]), _last(others[group])))
        best = best[:limit]
        return [group for group in groups if group in best]

    def drawn_curves(self, groups: list[str]) -> "pd.DataFrame":
        """Returns the data behind the curves of `groups`."""
        curves = self.curves if self.seed_curves is None else self.seed_curves
        return curves[curves["group"].isin(groups)]

    def best_of_algorithms(self, groups: list[str], limit: int) -> list[str]:
        """Returns the best group of each algorithm, at most `limit`, in order.

        Where all have one algorithm, they are the `limit` best.
        """
        if "algorithm" not in self.table:
            return self.best(groups, limit)
        of = self.table.set_index("group")["algorithm"]
        parts: dict[str, list[str]] = {}
        for group in groups:
            parts.setdefault(str(of[group]), []).append(group)
        if len(parts) == 1:
            return self.best(groups, limit)
        firsts = {self.best(part, 1)[0] for part in parts.values()}
        return self.best([group for group in groups if group in firsts], limit)

    def median_run(self, group: str) -> "pd.Series":
        """Returns the row of the group's run with the (lower) median of the ranking metric.

        It is that of another one in a group without the metric; see `median_text`.
        """
        runs = self.with_results[self.with_results["group"] == group].drop_duplicates("id")
        name = self._median_metric(group).name
        runs = runs.dropna(subset=[name]).sort_values(name, kind="stable")
        return runs.iloc[(len(runs) - 1) // 2]

    def _median_metric(self, group: str) -> Metric:
        """Returns the first metric that the group has. A QD score may be too large for a number."""
        metrics = self.rank.always, BY_NAME["qd_score"], BY_NAME["obj_max"]
        return next(metric for metric in metrics if self._counts(metric, [group])[0])

    def median_text(self, groups: list[str]) -> str:
        """Returns of what the runs that `median_run` chooses are the median, for a caption."""
        has_it = [count > 0 for count in self.counts(groups)]
        without = [group for group, has in zip(groups, has_it, strict=True) if not has]
        others = (f"the median {self._median_metric(group).phrase}" for group in without)
        phrase, other = self.ranked.phrase, listed([*dict.fromkeys(others)], "or")
        if not any(has_it):
            return other
        median = f"the median {'of the ' if phrase.startswith('mean ') else ''}{phrase}"
        return median if all(has_it) else f"{median} (where a group has none: {other})"

    def counts(self, groups: list[str]) -> list[int]:
        """Returns the number of runs behind the mean of each of `groups` in the ranking metric."""
        return self._counts(self.rank.always, groups)

    def run_counts(self, groups: list[str]) -> list[int]:
        """Returns the number of runs of each of `groups` that have results."""
        return self._counts(BY_NAME["qd_score"], groups)

    def _counts(self, metric: Metric, groups: list[str]) -> list[int]:
        n = self.table.set_index("group")[f"{metric.column}_n"]
        return [int(n[group]) for group in groups]

    def band_text(self, groups: list[str]) -> str:
        """Returns what the lines and bands of `groups` are."""
        return band_text(self.run_counts(groups), self.band)

    def lines_text(self, groups: list[str]) -> str:
        """Returns the same as a sentence of a caption."""
        several = "" if len(groups) == 1 else "s"
        most = max(self.run_counts(groups))
        has_band = most >= fewest_of_band(self.band) and self.band != "seeds"
        band = f" and band{several}" if has_band else ""
        return f" Line{several}{band}: {self.band_text(groups)}."


def read_tables(sweep_dir: Path) -> SweepTables:
    """Reads the tables of a sweep.

    Raises:
        BadInput: There is no such sweep, or `aggregate` has not written them yet.
    """
    sweep = SweepDir(sweep_dir)
    remedy = maker_of(sweep_dir / "table.csv").first
    if sweep.path.is_dir():
        require(sweep.summary, remedy)
    plan = tabled(read_plan(sweep), sweep.results)
    # Group labels and ids stay text, even one that looks like a number or like "null".
    text = {"group": str, "id": str, "scale": str}
    shown = [metric for metric in plan.metrics if metric.label]
    columns = {
        "summary": [metric.name for metric in plan.metrics],
        "table": [f"{metric.column}_{part}" for metric in shown for part in ("mean", "se", "n")],
        "curves": [f"{m.name}_{part}" for m in curves_of(plan.metrics) for part in ("mean", "se")],
    }
    summary, table, curves = (
        _with(read_csv(sweep_dir / f"{name}.csv", remedy, dtype=text), needed)
        for name, needed in columns.items()
    )
    # A QD score beyond the numbers of 64 bits is missing, unlike the other results.
    table = table[table[[f"{metric.column}_n" for metric in shown]].gt(0).any(axis=1)]
    by_seed = None
    if plan.figures.band in OF_SEEDS:
        names = [metric.name for metric in curves_of(plan.metrics)]
        by_seed = _with(read_csv(sweep.seed_curves, remedy, dtype=text), names)
    if COLUMN in table:  # not in the table of an earlier release
        scales = score_scales_of(summary, table["group"])
        words = dict(zip(table["group"], table[COLUMN], strict=True))
        plan = with_noise(plan, [(s, words[group]) for s, of in scales.items() for group in of])
    return replace(arrange(plan, summary, table, curves), seed_curves=by_seed)


def _last(score: float) -> float:
    """Returns a score to sort by: an unknown one comes last."""
    return math.inf if math.isnan(score) else score


def _with(table: "pd.DataFrame", names: list[str]) -> "pd.DataFrame":
    """Returns a table with empty columns for what an earlier release did not measure."""
    return table.reindex(columns=[*table.columns, *(name for name in names if name not in table)])


def arrange(
    plan: Plan, summary: "pd.DataFrame", table: "pd.DataFrame", curves: "pd.DataFrame"
) -> SweepTables:
    """Returns the tables with their groups sorted by scale, in the order of `table`."""
    groups = list(table["group"])
    series = {group: group for group in groups}
    scales = score_scales_of(summary, groups)
    return SweepTables(plan, summary, table, curves, scales, plain_marks(groups), series)


def rows_with_results(summary: "pd.DataFrame") -> "pd.DataFrame":
    """Returns the rows of summary.csv that have results, at least some."""
    status = summary["status"]
    is_outdated = (status == OUTDATED) & summary["evaluations"].notna()
    return summary[status.isin(_HAS_RESULTS) | is_outdated]


def score_scales_of(summary: "pd.DataFrame", groups: Iterable[str]) -> dict[str, list[str]]:
    """Returns those of `groups` with results that may share a QD-score axis: scale -> groups."""
    done = rows_with_results(summary)
    score_scale_of = done.drop_duplicates("group").set_index("group")["scale"]
    score_scales: dict[str, list[str]] = {}
    for group in groups:
        if group in score_scale_of.index:
            score_scales.setdefault(score_scale_of[group], []).append(group)
    return score_scales


def compared_metric(rank: Metric, summary: "pd.DataFrame", groups: list[str]) -> Metric:
    """Returns the metric that groups compare in: `rank`, or its replacement without cells."""
    defined = summary.loc[summary["group"].isin(groups), rank.name].notna().any()
    return rank if defined else rank.always


def largest_budgets(rows: "pd.DataFrame") -> "pd.DataFrame":
    """Returns the row of each run with its largest budget in the sweep, in the order of `rows`."""
    ascending = rows.sort_values("evaluations", kind="stable", na_position="first")
    return ascending.drop_duplicates("id", keep="last").sort_index()


def cells_of(table: "pd.DataFrame") -> "pd.Series":
    """Returns the number of cells of each group's archive, of table.csv; nan without cells."""
    by_group = table.set_index("group")
    cells: pd.Series = by_group["qd_score_mean"] / by_group[f"{NORM_QD_SCORE}_mean"]
    return cells


def per_cell(data: "pd.DataFrame", scores: Iterable[str], cells: "pd.Series") -> "pd.DataFrame":
    """Returns a table with scores in the unit of the QD score per cell.

    Args:
        data: A table with the columns `SCORE_mean` and `SCORE_se`.
        scores: The names of the scores.
        cells: The number of cells of each row, with the index of the table.
    """
    names = [f"{score}_{part}" for score in scores for part in ("mean", "se")]
    return data.assign(**{name: data[name] / cells for name in names})


def corrected_per_cell(data: "pd.DataFrame", cells: "pd.Series") -> tuple["pd.DataFrame", bool]:
    """Divides the QD scores of `tables/corrected.csv` by the cells, if all its archives have some.

    Args:
        data: The table, or the same with labels of groups.
        cells: Group -> the number of cells of its archive, as `cells_of` returns it.

    Returns:
        The table, and whether its QD scores are divided.
    """
    divisor = data["group"].map(cells)
    if divisor.isna().any():
        return data, False
    scores = ("qd_score", "corrected_qd_score", "delivered_qd_score")
    known = [score for score in scores if f"{score}_mean" in data]  # earlier tables lack the last
    return per_cell(data, known, divisor), True


def in_percent(summary: "pd.DataFrame") -> "pd.DataFrame":
    """Returns a table of runs with a column `NAME_percent` of each fraction."""
    fractions = (metric for metric in BY_NAME.values() if metric.percent and metric.name in summary)
    percent = {metric.column: summary[metric.name] * metric.factor for metric in fractions}
    return summary.assign(**percent)


def shown_text(tables: SweepTables, shown: dict[str, list[str]]) -> str:
    """Returns a sentence on the groups that a figure leaves out; empty if it shows all.

    `shown`: scale, or heading of a panel -> groups in the figure.
    """
    known = tables.panels if set(shown) <= set(tables.panels) else tables.score_scales
    text = ""
    for part, groups in shown.items():
        if len(groups) < len(known[part]):
            where = "" if len(known) == 1 else f" of {part}"
            without = tables.counts(groups).count(0)
            others = f"; {plural(without, 'group')} without one by the QD score" if without else ""
            text += (
                f" Shown: the {len(groups)} of {len(known[part])} groups{where}"
                f" with the {tables.rank.extreme} final mean {tables.rank.always.phrase}{others}."
            )
    left_out = [len(groups) for part, groups in known.items() if part not in shown]
    if left_out:
        what = "facet" if any(tables.facets.values()) else "domain, archive or offset"
        text += f" Not shown: {plural(sum(left_out), 'group')} of another {what}."
    return text


def others_text(groups: int) -> str:
    """Returns a sentence on groups of scales that have no figure; empty if there are none."""
    if not groups:
        return ""
    return f" Not shown: {plural(groups, 'group')} of another domain, archive or offset."


def score_scale_of(run_dir: Path, summary: dict[str, Any]) -> str:
    """Returns the domain (of config.yaml), archive and QD-score offset of a run in words.

    Runs with different texts must not share a QD-score axis or a colour scale, so its numbers are
    exact.
    """
    archive = summary["archive"]
    dims, cells, ranges = archive.get("dims"), archive.get("cells"), archive.get("ranges")
    if dims and len(dims) > 1:
        size = f" {TIMES} ".join(map(str, dims)) + " cells"
    else:
        size = f"{cells:,} cells" if cells else "no cells"
    parts = [domain_name(run_dir), f"{archive['type']} archive, {size}"]
    if ranges:
        parts.append(f" {TIMES} ".join(f"[{exact(low)}, {exact(high)}]" for low, high in ranges))
    parts.append(f"QD-score offset {exact(archive['qd_score_offset'])}")
    return "; ".join(parts)


def domain_name(run_dir: Path) -> str:
    """Returns the name of a run's domain, with its function or environment if that is another's.

    `lp_sphere` with the key `domain.function` swept is a task for each function.

    Raises:
        BadInput: Its config.yaml is missing or damaged.
    """
    path = RunFiles(run_dir).config
    try:
        domain = read_config(path)["domain"]
        name, task = str(domain["name"]), domain.get("function") or domain.get("env")
    except (KeyError, TypeError, AttributeError) as error:
        raise damaged(path, error) from error
    if task is None or _plain(task) in _plain(name) or _plain(name) in _plain(task):
        return name
    return f"{name} ({task})"


def _plain(name: str) -> str:
    """Returns the letters of a name, without the version of an environment."""
    return "".join(filter(str.isalpha, re.sub(r"-v\d+$", "", name))).lower()


def short_names(score_scales: list[str]) -> list[str]:
    """Returns score scales in the fewest parts (domain, archive, ...) by which all differ."""
    parts = [scale.split("; ") for scale in score_scales]
    for count in range(1, max(map(len, parts), default=1) + 1):
        names = ["; ".join(part[:count]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return score_scales


class TaskScore(NamedTuple):
    """A score from 0 to 1 that compares between tasks.

    Attributes:
        column: Its column in summary.csv.
        text: What scores are, the end of a sentence.
        phrase: What they are, inside a sentence.
        best: What a score of 1 is.
    """

    column: str
    text: str
    phrase: str
    best: str


_QD_SCORE = TaskScore(
    "qd_score_fraction",
    "QD scores divided by the number of cells and by the width of the domain's objective range",
    "QD scores that are divided by the cells and by the range of objectives",
    "an archive full of elites with the highest objective",
)
_DELIVERED = _QD_SCORE._replace(
    column=DELIVERED_FRACTION,
    text=f"delivered {_QD_SCORE.text}",
    phrase=f"delivered {_QD_SCORE.phrase}",
)
_SCORES = {
    "coverage": TaskScore("coverage", "coverages", "the coverage", "a full archive"),
    **{metric.name: _DELIVERED for metric in REEVALUATED if metric.ranks},
}


def task_score(rank: Metric) -> TaskScore:
    """Returns what tasks are compared in: that of the QD score where `rank` has none of its own."""
    return _SCORES.get(rank.name, _QD_SCORE)
