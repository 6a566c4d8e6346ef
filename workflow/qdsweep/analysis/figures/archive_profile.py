"""Archive profiles, performance profiles, and the archive of a run at the budget of its row."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.analysis.data import SweepData
from qdsweep.analysis.figures.figure import Drawn
from qdsweep.analysis.figures.heatmap import objective_limits
from qdsweep.analysis.figures.layout import MAX_LINES, MAX_PANELS, lay_out, level
from qdsweep.analysis.figures.style import THIN, draw_line, figure_width, short_numbers
from qdsweep.analysis.legend import DASHES, Block, place_mark
from qdsweep.analysis.noise import reported_text
from qdsweep.analysis.selection import SweepTables, shown_text, task_score
from qdsweep.analysis.statistics import Band, spread, standard_error
from qdsweep.config.archive_kinds import ARCHIVES
from qdsweep.files import read_arrays
from qdsweep.records.history import History, read_history
from qdsweep.records.paths import RunDir
from qdsweep.runs.load import Run, load
from qdsweep.text import number, plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_THRESHOLDS = 201


@dataclass(frozen=True)
class EarlierRun(Run):
    """A run with the archive that it had after an iteration.

    Its elites are in the middle of their cells: the history keeps no measures and no solutions.
    """

    history: History
    iteration: int

    @property
    def is_approximate(self) -> bool:
        """Whether that archive may have lacked some of these elites, or had others."""
        return self.history.is_approximate(self.config.get("algorithm"))

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """index, objective, measures (of the cells' middles), and the centroids if it has some."""
        index, objective = self.history.at(self.iteration)
        arrays = {"index": index, "objective": objective, "solution": np.zeros((len(index), 1))}
        if ARCHIVES[self.summary["archive"]["type"]].cells == "centroids":
            arrays |= read_arrays(self.files.archive, "centroids")
        arrays["measures"] = cell_middles(self.summary["archive"], arrays)
        return arrays


def cell_middles(about: dict[str, Any], arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Returns the ``(n, m)`` middles of cells of a grid archive, or centroids of a CVT archive.

    Args:
        about: `archive` of summary.json.
        arrays: `index` ``(n,)`` of the cells, and for a CVT archive its `centroids`.
    """
    if ARCHIVES[about["type"]].cells == "centroids":
        return arrays["centroids"][arrays["index"]]
    low, high = np.array(about["ranges"], dtype=float).T
    dims = np.array(about["dims"])
    cells = np.stack(np.unravel_index(arrays["index"], about["dims"]), axis=1)
    return low + (cells + 0.5) * (high - low) / dims


def reported_run(runs_dir: Path, row: "pd.Series") -> Run:
    """Returns a run at the budget of its row of summary.csv, if its history reaches back to it."""
    run = load(RunDir(runs_dir / row["id"]).results.path)
    history = read_history(run.files) if _went_on(row) else None
    return run if history is None else EarlierRun(run.path, history, int(row["iteration"]))


def objectives_of(run: Run) -> np.ndarray:
    """Returns the objectives of a run's elites, without reading its solutions."""
    if isinstance(run, EarlierRun):
        return run.history.at(run.iteration)[1]
    objectives: np.ndarray = read_arrays(run.files.archive, "objective")["objective"]
    return objectives


def moment_text(row: "pd.Series", run: Run) -> str:
    """Returns the evaluations of the archive of `run`, and its row's budget if that is less."""
    total, budget = int(row["total_evaluations"]), int(row["evaluations"])
    if _is_beyond(row, run):
        return f"at {number(total)} evaluations, not {number(budget)}"
    return f"at {number(budget)} evaluations"


def beyond_text(shown: Iterable[tuple["pd.Series", Run]]) -> str:
    """Returns a warning if an archive shown comes from beyond its row's budget, or is not exact."""
    runs = list(shown)
    further = sum(_is_beyond(row, run) for row, run in runs)
    text = approximate_text(isinstance(run, EarlierRun) and run.is_approximate for _, run in runs)
    if not further:
        return text
    return (
        f" {further} of these runs {'has' if further == 1 else 'have'} a larger budget than the"
        f" table. Only the final archive is stored, so that archive is shown.{text}"
    )


def approximate_text(flags: Iterable[bool]) -> str:
    """Returns a warning if some histories are approximate."""
    count = sum(flags)
    if not count:
        return ""
    return (
        f" The earlier archives of {plural(count, 'run')} are approximate: an earlier version of"
        " qdsweep did not record elites that left their cells or got worse."
    )


def _went_on(row: "pd.Series") -> bool:
    return bool(row["total_evaluations"] > row["evaluations"])


def _is_beyond(row: "pd.Series", run: Run) -> bool:
    return _went_on(row) and not isinstance(run, EarlierRun)


def archive_profile(objectives: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Counts the elites, ``(n,)`` objectives, that reach each of ``(k,)`` thresholds: ``(k,)``.

    This complementary cumulative distribution of the objective is not normalised: it starts at the
    number of filled cells. See Vassiliades et al. 2018, doi:10.1109/TEVC.2017.2735550, and the
    "archive profile" of Flageat et al. 2022, arXiv:2211.02193.
    """
    return len(objectives) - np.searchsorted(np.sort(objectives), thresholds, side="left")


def archive_profiles(data: SweepData) -> Drawn:
    """Draws the profile of each group, mean over its seeds; a panel for each facet and scale."""
    import pandas as pd

    shown = data.shown(MAX_PANELS, MAX_LINES)
    every = [group for groups in shown.values() for group in groups]
    rows = data.with_results.drop_duplicates(["group", "id"])
    rows = rows[rows["group"].isin(every)]
    runs = {
        group: [(row, reported_run(data.runs_dir, row)) for _, row in members.iterrows()]
        for group, members in rows.groupby("group")
    }
    width = figure_width(5.5 if len(shown) == 1 else 9)
    columns = min(len(shown), max(int(width / 2.9), 1), 3)
    height = 0.62 * width / columns + 0.5
    figure, parts = lay_out(data.legends(shown), columns, width, height)
    band = data.band_text(every)
    parts_of_data, drawn = [], []
    for part, groups in zip(parts, shown.values(), strict=True):
        members = {group: [run for _, run in runs[group]] for group in groups}
        profiles = mean_profiles(members, data.band)
        ax = part.panel.subplots()
        _draw(ax, data, profiles)
        part.add_legend(band)
        parts_of_data.append(profiles)
        drawn.append((data.score_scale_of[groups[0]], ax))
    level(drawn)
    caption = (
        "Number of elites whose objective is at least the value on the horizontal axis. A line"
        " starts at the number of filled cells and ends at the best objective of an elite, or at"
        " the upper end of the domain's range. Where objectives are below that range, it starts at"
        " the cells within the range."
        f"{data.lines_text(every)}{data.scale_text}{reported_text(data.plan)}"
        f"{beyond_text(pair for group in every for pair in runs[group])}{shown_text(data, shown)}"
    )
    points = pd.concat(parts_of_data, ignore_index=True)
    return Drawn("archive_profiles", "Archives", "Archive profiles", caption, figure, points)


def mean_profiles(runs: dict[str, list[Run]], band: str = "error") -> "pd.DataFrame":
    """Returns the mean profile of each group over its runs, all of one scale.

    Columns: group, objective (thresholds, the same for all), n, elites_mean and elites_se; then
    the line of `band` and its ends, and for `seeds` the profile of each run.
    """
    import pandas as pd

    objectives = {group: [objectives_of(run) for run in members] for group, members in runs.items()}
    about = next(iter(runs.values()))[0].summary["archive"]
    every = np.concatenate([values for members in objectives.values() for values in members])
    thresholds = np.linspace(*objective_limits(every, about), _THRESHOLDS)
    parts = []
    for group, members in objectives.items():
        counts = np.stack([archive_profile(values, thresholds) for values in members])
        columns = {"objective": thresholds, "n": len(members), "elites_mean": counts.mean(axis=0)}
        columns["elites_se"] = standard_error(counts)
        columns |= {f"elites_{end}": part for end, part in spread(counts, band)._asdict().items()}
        if band == "seeds":
            columns |= {f"elites_run_{place}": part for place, part in enumerate(counts, start=1)}
        parts.append(pd.DataFrame({"group": group, **columns}))
    return pd.concat(parts, ignore_index=True)


def _draw(ax: "Axes", tables: SweepTables, data: "pd.DataFrame") -> None:
    for group, line in data.groupby("group", sort=False):
        label, mark, x = tables.series[str(group)], tables.marks[str(group)], line["objective"]
        draw_line(ax, label, mark, x, *(line[f"elites_{end}"] for end in Band._fields))
        for name in line.filter(regex="^elites_run_"):
            ax.plot(x, line[name], color=mark.color, linestyle=DASHES[mark.dash], **THIN)
    ax.set(xlabel="Objective, at least", ylabel="Elites")
    ax.set_ylim(0, None)
    ax.margins(x=0)
    ax.grid(True)
    short_numbers(ax.xaxis, 5)
    short_numbers(ax.yaxis, 5)


def performance_profiles(data: SweepData) -> list[Drawn]:
    """Draws the performance profiles of `tables/profiles.csv`; nothing where there are none."""
    profiles = data.stage_table("profiles")
    if profiles is None:
        return []
    area = profiles.groupby("algorithm", sort=False)["fraction"].mean()
    every = list(area.index)
    best = set(area.nlargest(MAX_LINES).index)
    labels = {name: data.called.called(name) for name in every if name in best}
    profiles = profiles[profiles["algorithm"].isin(best)]
    width = figure_width(5.5)
    groups = {series: group for group, series in reversed(data.series.items())}
    if set(labels.values()) <= set(groups):
        order = list(groups)[::-1]
        shown = sorted(labels, key=lambda name: order.index(labels[name]))
        marks = [data.marks[groups[labels[name]]] for name in shown]
        legend = data.marks.legend([groups[labels[name]] for name in shown])
    else:
        shown = list(labels)
        marks = [place_mark(place) for place in range(len(shown))]
        legend = [Block("", [(labels[n], mark) for n, mark in zip(shown, marks, strict=True)])]
    figure, (part,) = lay_out({"": legend}, 1, width, 0.6 * width + 0.4)
    ax = part.panel.subplots()
    for algorithm, mark in zip(shown, marks, strict=True):
        line = profiles[profiles["algorithm"] == algorithm]
        draw_line(
            ax,
            labels[algorithm],
            mark,
            *(line[name] for name in ("tau", "fraction", "low", "high")),
        )
    ax.set(xlabel="Normalised score τ", ylabel="Fraction of runs above τ")
    ax.set_ylim(0, 1.02)
    ax.margins(x=0)
    ax.grid(True)
    short_numbers(ax.xaxis)
    part.add_legend(f"{plural(len(data.score_scales), 'task')}{_band(profiles)}")
    caption = (
        "Fraction of runs, over all tasks, whose score is above τ (performance profile, Agarwal et"
        f" al. 2021). Higher is better. Scores are {task_score(data.rank).text}."
    )
    if _band(profiles):
        caption += " Bands: pointwise 95 % intervals over seeds (Clopper and Pearson 1934)."
    if len(shown) < len(every):
        caption += f" Shown: the {len(shown)} of {len(every)} with the largest area."
    profiles = profiles.assign(algorithm=profiles["algorithm"].map(labels))
    name, title = "performance_profiles", "Performance profiles"
    return [Drawn(name, "Comparison", title, caption, figure, profiles)]


def _band(data: "pd.DataFrame") -> str:
    return ", 95 % interval" if data["low"].notna().any() else ""
