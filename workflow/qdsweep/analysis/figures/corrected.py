"""By how much a sweep overestimates its QD score: the figures of the corrected archives."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.analysis.data import SweepData
from qdsweep.analysis.figures.figure import Drawn
from qdsweep.analysis.figures.heatmap import (
    Limits,
    add_color_bar,
    color_limits,
    draw_archive,
    elite_table,
    objective_label,
)
from qdsweep.analysis.figures.style import (
    NOTE,
    add_heading,
    figure_width,
    short_numbers,
    wrap,
)
from qdsweep.analysis.legend import COLORS
from qdsweep.analysis.noise import DELIVERED_TEXT
from qdsweep.analysis.selection import cells_of, corrected_per_cell, shown_text
from qdsweep.analysis.statistics import half_width
from qdsweep.config.sweep import Reevaluate
from qdsweep.elites.corrected_archive import CorrectedRun, HitRates, read_hits
from qdsweep.metrics import RANK
from qdsweep.records.paths import RunDir
from qdsweep.runs.load import Run, load
from qdsweep.text import number, plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SECTION = "Corrected archives"
_MAX_BARS = 12
_MAX_PANELS = 4
_SIDE_BY_SIDE = 5.0  # inches that two maps need side by side


def corrected_figures(data: SweepData) -> list[Drawn]:
    """Returns the figures of `tables/corrected.csv`; none where there are none."""
    scores, settings = data.stage_table("corrected"), data.plan.reevaluate
    if settings is None or scores is None:
        return []
    labels = {group: name.label for group, name in data.called.names.items()}
    scores = scores.assign(group=scores["group"].map(labels)).set_index("group", drop=False)
    archives = _archives(data, scores, settings)
    return [_scores(data, scores, settings), *([] if archives is None else [archives])]


def _scores(data: SweepData, scores: "pd.DataFrame", settings: Reevaluate) -> Drawn:
    """Draws the QD score of each group, as reported and corrected."""
    from matplotlib.figure import Figure

    chosen = data.shown(_MAX_PANELS, _MAX_BARS)
    width = figure_width(7.2)
    heights = [0.4 * len(groups) + 0.6 + 0.3 * (len(chosen) > 1) for groups in chosen.values()]
    figure = Figure(figsize=(width, sum(heights) + 0.3), layout="constrained")
    parts = figure.subfigures(len(chosen), 1, height_ratios=heights, squeeze=False)[:, 0]
    drawn, is_divided = corrected_per_cell(scores, cells_of(data.table))
    for part, (heading, groups) in zip(parts, chosen.items(), strict=True):
        ax = part.subplots()
        rows = drawn.loc[[group for group in groups if group in drawn.index]]
        _bars(ax, rows, [wrap(data.series[group], width / 3) for group in rows.index])
        ax.set_xlabel((RANK if is_divided else RANK.always).label)
        if len(chosen) > 1:
            add_heading(part, heading, width)
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    caption = (
        "QD score of the final archives, as reported and corrected. Corrected: every elite is"
        f" evaluated {plural(settings.times, 'time')} again with fresh seeds, and inserted with its"
        " mean objective and measures into an empty archive (Flageat and Cully 2024). Delivered:"
        f" {DELIVERED_TEXT}. The number next to a bar is the overestimation, the share of the"
        " reported score. Runs are taken at their ends. Bars and whiskers: mean and its pointwise"
        " 95 % interval (Student's t) over seeds."
        f"{data.scale_text}{shown_text(data, chosen)}"
    )
    shown = [group for groups in chosen.values() for group in groups]
    title = "Overestimation of the score"
    points = scores[scores["group"].isin(shown)]
    return Drawn("corrected_scores", _SECTION, title, caption, figure, points)


def _hit_rates(data: SweepData, group: str, folder: RunDir, settings: Reevaluate) -> Drawn:
    """Draws the corrected archive of a run next to a map of the hit rates of its elites."""
    corrected = CorrectedRun(folder.path, settings.stem)
    rates = HitRates(folder.path, settings.stem, settings.times)
    run, chosen = load(folder.path), data.plan.figures.color_range
    objectives, about = corrected.arrays["objective"], run.summary["archive"]
    limits = color_limits([objectives], about, chosen, objective_label(run))
    shares = (0.0, 1.0)
    maps, points = _two_maps({"corrected": (corrected, limits), "hit rate": (rates, shares)})
    first, second = maps.axes
    add_color_bar(maps, [first], [objectives], limits)
    add_color_bar(maps, [second], [rates.arrays["objective"]], shares, label="Hit rate")
    caption = (
        f"The final archive of {group} (the run with {data.median_text([group])}). Corrected: the"
        " best elite of each cell, with the mean objective and measures of"
        f" {plural(settings.times, 'fresh evaluation')}. Hit rate: the share of these evaluations"
        " in the elite's own cell. Grey: no elite."
    )
    title = "A corrected archive, and its hit rates"
    return Drawn("corrected_archives", _SECTION, title, caption, maps, points)


def _two_maps(runs: Mapping[str, tuple[Run, Limits]]) -> tuple["Figure", "pd.DataFrame"]:
    """Draws two archives, and returns the figure and its elites.

    `runs`: name -> run and the ends of its colours.
    """
    import pandas as pd
    from matplotlib.figure import Figure

    width = figure_width(7.2)
    rows, columns = (1, 2) if width >= _SIDE_BY_SIDE else (2, 1)
    figure = Figure(figsize=(width, 0.47 * width * rows * 2 / columns), layout="constrained")
    for ax, (name, (run, limits)) in zip(figure.subplots(rows, columns), runs.items(), strict=True):
        draw_archive(ax, run, limits)
        ax.set_title(f"{name}: {plural(len(run.arrays['objective']), 'elite')}")
    parts = [elite_table(run, archive=name) for name, (run, _) in runs.items()]
    return figure, pd.concat(parts, ignore_index=True)


def _bars(ax: "Axes", data: "pd.DataFrame", names: list[str]) -> None:
    places = np.arange(len(data))
    means, corrected = data["qd_score_mean"], data["corrected_qd_score_mean"]
    errors, own = (
        np.nan_to_num(half_width(data[f"{name}_se"], data["n"]))
        for name in ("qd_score", "corrected_qd_score")
    )
    whiskers: dict[str, Any] = {"fmt": "none", "capsize": 2, "linewidth": 0.9}
    ax.barh(places, means, height=0.74, color="0.84", label="as reported")
    ax.errorbar(means, places - 0.28, xerr=errors, ecolor="0.45", **whiskers)
    ax.barh(places, corrected, height=0.38, color=COLORS[0], label="corrected")
    if "delivered_qd_score_mean" in data and data["delivered_qd_score_mean"].notna().any():
        delivered = data["delivered_qd_score_mean"]
        ax.plot(delivered, places, "D", color="0.1", markersize=4, label="delivered")
    ax.errorbar(corrected, places, xerr=own, ecolor="0.1", **whiskers)
    ends = np.maximum(means + errors, corrected + own)
    for place, end, share in zip(places, ends, data["luck_percent_mean"], strict=True):
        ax.annotate(
            f"{number(share, 1)} %",
            (max(end, 0), place),
            (5, 0),
            textcoords="offset points",
            va="center",
            **NOTE,
        )
    ax.set_yticks(places, names)
    ax.invert_yaxis()
    ax.set_xlim(min(0, 1.05 * (corrected - own).min()), 1.2 * max(ends.max(), 0) or None)
    ax.tick_params(axis="y", length=0)
    short_numbers(ax.xaxis)


def _archives(data: SweepData, scores: "pd.DataFrame", settings: Reevaluate) -> Drawn | None:
    """Draws the corrected archive of the best group's median run, and the hit rates of its elites.

    Without hit rates, it is next to the archive as reported.
    """
    groups = max(data.score_scales.values(), key=len)
    name = "delivered_qd_score_mean"
    if name not in scores or scores[name].isna().all():
        name = "corrected_qd_score_mean"
    ranked = scores.loc[scores["group"].isin(groups), name].dropna()
    if ranked.empty:
        return None
    group = str(ranked.idxmax())
    folder = data.run(str(data.median_run(group)["id"]))
    if not folder.corrected(settings.stem).exists():
        return None
    if len(read_hits(folder, settings.stem)):
        return _hit_rates(data, group, folder, settings)
    runs: dict[str, Run] = {
        "as reported": load(folder.path),
        "corrected": CorrectedRun(folder.path, settings.stem),
    }
    objectives = [run.arrays["objective"] for run in runs.values()]
    about, chosen = runs["as reported"].summary["archive"], data.plan.figures.color_range
    limits = color_limits(objectives, about, chosen)
    figure, points = _two_maps({name: (run, limits) for name, run in runs.items()})
    is_stacked = figure_width(7.2) < _SIDE_BY_SIDE
    add_color_bar(figure, list(figure.axes), objectives, limits, aspect=25 * (1 + is_stacked))
    caption = (
        f"The final archive of {group} (the run with {data.median_text([group])}), as reported"
        " and corrected. Corrected: the best elite of each cell, with the mean objective and"
        f" measures of {plural(settings.times, 'fresh evaluation')}. Colour: objective, one scale"
        " for both. Grey: no elite."
    )
    title = "An archive as reported and corrected"
    return Drawn("corrected_archives", _SECTION, title, caption, figure, points)
