"""Archives of different cells in one figure: their elites in a common archive."""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qdsweep.analysis.data import SweepData
from qdsweep.analysis.figures.archive_profile import EarlierRun, beyond_text, reported_run
from qdsweep.analysis.figures.figure import Drawn
from qdsweep.analysis.figures.style import (
    add_heading,
    figure_width,
    short_numbers,
    wrap,
)
from qdsweep.analysis.selection import SweepTables, domain_name, others_text
from qdsweep.analysis.statistics import half_width
from qdsweep.metrics import BY_NAME, RANK
from qdsweep.runs.load import Run
from qdsweep.text import TIMES, exact, plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MAX_GROUPS = 16
MAX_FAMILIES = 4

Geometry = tuple[tuple[int, ...], tuple[tuple[float, float], ...]]


class ArchiveFamily(NamedTuple):
    """Groups whose archives differ, but not their task and QD-score offset.

    `task`: what else must be equal, as `_task` returns it. `abouts`: `archive` of summary.json, one
    of each of their score scales.
    """

    domain: str
    offset: float
    measure_dim: int
    task: tuple[Any, ...] | None
    groups: list[str]
    abouts: list[dict[str, Any]]


def common_archives(data: SweepData) -> list[Drawn]:
    """Draws QD score and coverage of groups with different archives on common axes.

    None where all archives of a domain have the same cells.
    """
    import pandas as pd
    from matplotlib.figure import Figure

    every = _families(data)
    families = every[:MAX_FAMILIES]
    if not families:
        return []
    parts, titles, notes, geometries = [], [], [], []
    for family in families:
        geometry = coarsest(family.abouts)
        scores, note = _scores(data, family, geometry)
        parts.append(scores)
        geometries.append(geometry)
        titles.append(_title(family, geometry))
        if len(scores) > MAX_GROUPS:
            note += f" Shown: the {MAX_GROUPS} of {len(scores)} groups with the highest QD score."
        notes.append(f"{titles[-1]}.{note}")
    width = figure_width(9)
    shown = [part.nlargest(MAX_GROUPS, "qd_score_mean").sort_index() for part in parts]
    heights = [0.9 + 0.3 * len(part) + 0.3 * (len(families) > 1) for part in shown]
    figure = Figure(figsize=(width, sum(heights)), layout="constrained")
    rows = figure.subfigures(len(families), 1, height_ratios=heights, squeeze=False)[:, 0]
    for row, part, title, geometry in zip(rows, shown, titles, geometries, strict=True):
        score, coverage = row.subplots(1, 2)
        _dots(score, data, part, "qd_score", RANK.label, 1 / math.prod(geometry[0]))
        covered = BY_NAME["coverage"]
        _dots(coverage, data, part, covered.name, covered.heading, covered.factor)
        score.set_yticks(range(len(part)), [wrap(group, 0.3 * width, 8) for group in part["group"]])
        coverage.set_yticks(range(len(part)), [])
        if len(families) > 1:
            add_heading(row, title, width)
    caption = (
        "QD score per cell and coverage of all elites in a common grid archive, so that archives"
        " with different cells are comparable. For each measure it has the coarsest cells over the"
        f" union of the ranges: {' '.join(notes)} Dots and bars: mean and pointwise 95 % interval"
        " over seeds."
        f"{others_text(sum(len(family.groups) for family in every[MAX_FAMILIES:]))}"
    )
    points = pd.concat(parts, ignore_index=True)
    title = "Archives of different cells, re-binned"
    return [Drawn("common_archive", "Archives", title, caption, figure, points)]


def coarsest(abouts: list[dict[str, Any]]) -> Geometry:
    """Returns the dims and ranges of a grid that no archive's cells are larger than.

    At least one archive (`archive` of summary.json) has cells. A CVT archive of k cells and m
    measures counts as a grid of k^(1/m) cells along each.
    """
    structured = [about for about in abouts if about["cells"]]
    sizes = []
    for about in structured:
        measures = len(about["ranges"])
        sizes.append(about["dims"] or [max(round(about["cells"] ** (1 / measures)), 1)] * measures)
    ranges = np.array([about["ranges"] for about in structured], dtype=float)
    low, high = ranges[:, :, 0].min(axis=0), ranges[:, :, 1].max(axis=0)
    dims = tuple(int(size) for size in np.min(sizes, axis=0))
    return dims, tuple(zip(low.tolist(), high.tolist(), strict=True))


def rebin(run: Run, geometry: Geometry) -> tuple[float, float]:
    """Returns QD score and coverage (a fraction) of a run's elites in another grid archive."""
    from qdsweep.algorithms.ribs import ribs

    dims, ranges = geometry
    offset = run.summary["archive"]["qd_score_offset"]
    archive = ribs.archives.GridArchive(
        solution_dim=1, dims=dims, ranges=ranges, qd_score_offset=offset
    )
    objective = run.arrays["objective"]
    if len(objective):
        solution = np.zeros((len(objective), 1))
        archive.add(solution, objective, run.arrays["measures"])
    return float(archive.stats.qd_score), float(archive.stats.coverage)


def _families(data: SweepData) -> list[ArchiveFamily]:
    """Returns the families of two or more score scales that differ only in their archives."""
    families: list[ArchiveFamily] = []
    for groups in data.score_scales.values():
        run = reported_run(data.runs_dir, data.median_run(groups[0]))
        about, task = run.summary["archive"], _task(run)
        own = domain_name(run.path), about["qd_score_offset"], run.arrays["measures"].shape[1]
        alike = [
            family
            for family in families
            if own == family[:3] and (task == family.task or None in (task, family.task))
        ]
        if len(alike) != 1:
            alike = [ArchiveFamily(*own, task, [], [])]
            families += alike
        alike[0].groups.extend(groups)
        alike[0].abouts.append(about)
    return [
        family
        for family in families
        if len(family.abouts) > 1 and any(about["cells"] for about in family.abouts)
    ]


def _task(run: Run) -> tuple[Any, ...] | None:
    """Returns the dimension of a task and its measures; None where only its authors know.

    The number of weights of a policy is no part of the task.
    """
    if "imported" in run.config:
        return None
    about = run.summary["archive"]
    dimension = None if "policy" in run.config["domain"] else about.get("solution_dim")
    return dimension, *(about.get("measures") or ())


def _scores(
    data: SweepData, family: ArchiveFamily, geometry: Geometry
) -> tuple["pd.DataFrame", str]:
    """Returns mean and standard error of each group, and a note on them for the caption."""
    import pandas as pd

    rows = data.with_results.drop_duplicates(["group", "id"])
    rows = rows[rows["group"].isin(family.groups)]
    runs = [(row, reported_run(data.runs_dir, row)) for _, row in rows.iterrows()]
    scores = pd.DataFrame([rebin(run, geometry) for _, run in runs], columns=["score", "covered"])
    groups = scores.groupby(rows["group"].to_numpy(), sort=False)
    means = groups.agg(
        n=("score", "count"),
        qd_score_mean=("score", "mean"),
        qd_score_se=("score", "sem"),
        coverage_mean=("covered", "mean"),
        coverage_se=("covered", "sem"),
    )
    means = means.loc[family.groups].rename_axis("group").reset_index()
    means.insert(0, "domain", family.domain)
    middles = sum(isinstance(run, EarlierRun) for _, run in runs)
    note = ""
    if middles:
        note = f" The elites of {plural(middles, 'run')} are in the middle of their own cells."
    return means, note + beyond_text(runs)


def _title(family: ArchiveFamily, geometry: Geometry) -> str:
    dims, ranges = geometry
    size = f" {TIMES} ".join(map(str, dims))
    extent = f" {TIMES} ".join(f"[{exact(low)}, {exact(high)}]" for low, high in ranges)
    return f"{family.domain}; {size} cells; {extent}; QD-score offset {exact(family.offset)}"


def _dots(
    ax: "Axes", tables: SweepTables, data: "pd.DataFrame", name: str, heading: str, factor: float
) -> None:
    halves = half_width(data[f"{name}_se"], data["n"])
    for place, row in enumerate(data.to_dict("records")):
        half = halves[place]
        ax.errorbar(
            row[f"{name}_mean"] * factor,
            place,
            xerr=None if math.isnan(half) else half * factor,
            marker="o",
            markersize=4.5,
            capsize=3,
            color=tables.marks[row["group"]].color,
        )
    ax.set_ylim(len(data) - 0.5, -0.5)
    if (data[f"{name}_mean"] >= np.nan_to_num(halves)).all():
        ax.set_xlim(0, None)
    ax.set_xlabel(heading)
    ax.grid(True, axis="x")
    short_numbers(ax.xaxis, 5)
