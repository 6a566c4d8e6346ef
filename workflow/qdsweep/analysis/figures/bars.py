"""Bar charts: the time of each phase of the runs, and the importance of swept parameters."""

import math
from typing import TYPE_CHECKING

import numpy as np

from qdsweep.analysis.data import SweepData
from qdsweep.analysis.figures.figure import Drawn, Omitted
from qdsweep.analysis.figures.layout import lay_out
from qdsweep.analysis.figures.search_curves import SECTION
from qdsweep.analysis.figures.style import add_heading, figure_width, wrap
from qdsweep.analysis.legend import COLORS, Block, Mark
from qdsweep.analysis.sheet import read_sheet
from qdsweep.analysis.timing import group_times, run_times

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


_MAX_BARS = 24
# Phase -> its label in the figure, and its colour.
_BARS = {
    "evaluate": ("evaluate", "#56B4E9"),
    "ask": ("ask", "#E69F00"),
    "tell": ("tell", "#D55E00"),
    "reload": ("reload files", "#009E73"),
    "metrics": ("own metrics", "#0072B2"),
    "compile": ("compilation", "#CC79A7"),
    "rest": ("other", "#999999"),
}

MOST_NAMES = 12
_SHARES = {"ped_anova": "PED-ANOVA", "fanova": "fANOVA"}


def timing_figure(data: SweepData) -> Drawn:
    """Draws the seconds of each phase, a bar for each group."""
    groups = group_times(run_times(data, data.runs_dir))
    bars = {phase: look for phase, look in _BARS.items() if f"{phase}_mean" in groups}
    shown = groups.head(_MAX_BARS)
    width = figure_width(8)
    labels = [wrap(group, 0.4 * width, 8) for group in shown["group"]]
    lines = sum(label.count("\n") + 1.3 for label in labels)
    legend = Block("", [(name, Mark(color)) for name, color in bars.values()], filled=True)
    figure, (part,) = lay_out({"": [legend]}, 1, width, 0.8 + 0.19 * lines)
    ax = part.panel.subplots()
    left = np.zeros(len(shown))
    for phase, (_, color) in bars.items():
        seconds = shown[f"{phase}_mean"].to_numpy(float)
        ax.barh(np.arange(len(shown)), seconds, 0.7, left, color=color)
        left += seconds
    ax.set_yticks(np.arange(len(shown)), labels)
    ax.invert_yaxis()
    ax.set_xlim(0, 1.02 * left.max())
    ax.set_xlabel("Seconds of a run")
    ax.grid(True, axis="x")
    part.add_legend("")
    parts = [f"{phase}_{part}" for phase in bars for part in ("mean", "se")]
    left_out = ""
    if len(groups) > _MAX_BARS:
        left_out = f" Shown: the first {_MAX_BARS} of {len(groups)} groups. The CSV file has all."
    return Drawn(
        name="timing",
        section="Time",
        title="Run time by phase",
        caption=(
            "Mean seconds of a run in each phase of its iterations, in compilation, and between the"
            f" iterations (other). Only evaluation is shared by workers.{left_out}"
        ),
        figure=figure,
        data=groups[["group", "runs", "workers", *parts]],
    )


def importance_figure(data: SweepData) -> list[Drawn | Omitted]:
    """Returns the figure of `tables/importance.csv`; none where there is no such table."""
    from matplotlib.figure import Figure

    shares = data.stage_table("importance")
    if shares is None:
        return []
    sheet = read_sheet(data.sweep.tables / "importance.json")
    if shares.empty:
        return [Omitted(sheet.name, SECTION, sheet.title, sheet.note.rstrip("."))]
    parts = [(str(of), rows.head(MOST_NAMES)) for of, rows in shares.groupby("of", sort=False)]
    width = figure_width(3.6 * len(parts) + 0.6)
    height = 0.46 * max(len(rows) for _, rows in parts) + 1.1
    figure = Figure(figsize=(width, height), layout="constrained")
    panels = figure.subfigures(1, len(parts), squeeze=False)[0]
    for panel, (of, rows) in zip(panels, parts, strict=True):
        ax = panel.subplots()
        _bars(
            ax,
            rows,
            [wrap(data.plan.called(name), width / len(parts) / 3) for name in rows["name"]],
        )
        settings, best = rows["settings"].iat[0], rows["best"].iat[0]
        heading = f"{of}: {settings} settings, the best {best} compared with all"
        add_heading(panel, heading, width / len(parts))
    handles, labels = ax.get_legend_handles_labels()
    handles, labels = handles[1:] + handles[:1], labels[1:] + labels[:1]  # lines come first
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    caption = "The values of the table. Black marks: importance by chance."
    return [Drawn(sheet.name, SECTION, "Importance as bars", caption, figure, shares)]


def _bars(ax: "Axes", data: "pd.DataFrame", names: list[str]) -> None:
    places = np.arange(len(data))
    for shift, color, (column, label) in zip((-0.19, 0.19), COLORS, _SHARES.items(), strict=False):
        values, chance = (100 * data[name].to_numpy(float) for name in (column, f"{column}_chance"))
        ax.barh(places + shift, np.nan_to_num(values), height=0.34, color=color, label=label)
        ax.plot(
            chance, places + shift, "|", color="0.1", markersize=9, markeredgewidth=1.4,
            label="by chance" if shift > 0 else None,
        )  # fmt: skip
        for place, value in zip(places, values, strict=True):
            if math.isnan(value):
                ax.annotate(
                    "not in all settings", (0, place + shift), (3, 0), textcoords="offset points",
                    va="center", fontsize=6.5, color="0.45",
                )  # fmt: skip
    ax.set_yticks(places, names)
    ax.invert_yaxis()
    ax.set_xlim(0, None)
    ax.set_xlabel("importance (%)")
    ax.tick_params(axis="y", length=0)
