"""Archive profiles: how many cells hold an elite of at least some objective."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from qdsweep.analysis.bands import Band, spread
from qdsweep.analysis.figures.figure import Drawn
from qdsweep.analysis.figures.heatmap import objective_limits
from qdsweep.analysis.figures.marks import DASHES
from qdsweep.analysis.figures.panels import MAX_LINES, MAX_PANELS, lay_out, level
from qdsweep.analysis.figures.row_archive import beyond_text, objectives_of, reported_run
from qdsweep.analysis.figures.style import THIN, draw_line, figure_width, short_numbers
from qdsweep.analysis.selection import Tables, shown_text
from qdsweep.analysis.tables.statistics import standard_error
from qdsweep.experiment.load import Run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_THRESHOLDS = 201


def archive_profile(objectives: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Counts the elites, ``(n,)`` objectives, that reach each of ``(k,)`` thresholds: ``(k,)``.

    That is the complementary cumulative distribution of the objective, not normalised by the
    number of elites, so that it starts at the number of filled cells (Vassiliades et al. 2018,
    doi:10.1109/TEVC.2017.2735550; the "archive profile" of Flageat et al. 2022, arXiv:2211.02193).
    """
    return len(objectives) - np.searchsorted(np.sort(objectives), thresholds, side="left")


def archive_profiles(tables: Tables, runs_dir: Path) -> Drawn:
    """Draws the profile of each group, mean over its seeds; a panel for each facet and scale."""
    import pandas as pd

    shown = tables.shown(MAX_PANELS, MAX_LINES)
    every = [group for groups in shown.values() for group in groups]
    rows = tables.with_results.drop_duplicates(["group", "id"])
    rows = rows[rows["group"].isin(every)]
    runs = {
        group: [(row, reported_run(runs_dir, row)) for _, row in found.iterrows()]
        for group, found in rows.groupby("group")
    }
    width = figure_width(5.5 if len(shown) == 1 else 9)
    columns = min(len(shown), max(int(width / 2.9), 1), 3)
    height = 0.62 * width / columns + 0.5
    figure, parts = lay_out(tables.legends(shown), columns, width, height)
    band = tables.band_text(every)
    parts_of_data, drawn = [], []
    for part, groups in zip(parts, shown.values(), strict=True):
        found = {group: [run for _, run in runs[group]] for group in groups}
        data = mean_profiles(found, tables.band)
        ax = part.panel.subplots()
        _draw(ax, tables, data)
        part.add_legend(band)
        parts_of_data.append(data)
        drawn.append((tables.score_scale_of[groups[0]], ax))
    level(drawn)
    caption = (
        "Archive profiles: the number of elites with at least an objective. A line starts at the"
        " number of filled cells (at those within the domain's objective range, if some are below"
        " it) and ends at the best objective. Lines and bands:"
        f" {band}.{tables.scale_text}{beyond_text(pair for group in every for pair in runs[group])}"
        f"{shown_text(tables, shown)}"
    )
    data = pd.concat(parts_of_data, ignore_index=True)
    return Drawn("archive_profiles", "Archives", "Archive profiles", caption, figure, data)


def mean_profiles(runs: dict[str, list[Run]], band: str = "error") -> "pd.DataFrame":
    """Returns the mean profile of each group over its runs, all of one scale.

    Columns: group, objective (thresholds, the same for all), n, elites_mean and elites_se; then
    the line of `band` and its ends, and for `seeds` the profile of each run.
    """
    import pandas as pd

    objectives = {group: [objectives_of(run) for run in found] for group, found in runs.items()}
    about = next(iter(runs.values()))[0].summary["archive"]
    every = np.concatenate([values for found in objectives.values() for values in found])
    thresholds = np.linspace(*objective_limits(every, about), _THRESHOLDS)
    parts = []
    for group, found in objectives.items():
        counts = np.stack([archive_profile(values, thresholds) for values in found])
        columns = {"objective": thresholds, "n": len(found), "elites_mean": counts.mean(axis=0)}
        columns["elites_se"] = standard_error(counts)
        columns |= {f"elites_{end}": part for end, part in spread(counts, band)._asdict().items()}
        if band == "seeds":
            columns |= {f"elites_run_{place}": part for place, part in enumerate(counts, start=1)}
        parts.append(pd.DataFrame({"group": group, **columns}))
    return pd.concat(parts, ignore_index=True)


def _draw(ax: "Axes", tables: Tables, data: "pd.DataFrame") -> None:
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
