"""Where the time of a finished sweep went."""

from pathlib import Path

import numpy as np

from qdsweep.analysis.figures.figure import Drawn
from qdsweep.analysis.figures.marks import Block, Mark
from qdsweep.analysis.figures.panels import lay_out
from qdsweep.analysis.figures.style import figure_width, wrap
from qdsweep.analysis.selection import Tables
from qdsweep.analysis.tables.run_times import group_times, run_times

MAX_BARS = 24
# Phase -> what the figure calls it, and its colour.
_BARS = {
    "evaluate": ("evaluate", "#56B4E9"),
    "ask": ("ask", "#E69F00"),
    "tell": ("tell", "#D55E00"),
    "reload": ("reload files", "#009E73"),
    "metrics": ("own metrics", "#0072B2"),
    "compile": ("compilation", "#CC79A7"),
    "rest": ("rest", "#999999"),
}


def timing_figure(tables: Tables, runs_dir: Path) -> Drawn:
    """Draws the seconds of each phase, a bar for each group."""
    groups = group_times(run_times(tables, runs_dir))
    bars = {phase: look for phase, look in _BARS.items() if f"{phase}_mean" in groups}
    shown = groups.head(MAX_BARS)
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
    if len(groups) > MAX_BARS:
        left_out = f" Shown: the first {MAX_BARS} of {len(groups)} groups; the data have all."
    return Drawn(
        name="timing",
        section="Time",
        title="Where the time goes",
        caption=(
            "Mean seconds of a run in each phase of its iterations, in compilation, and between the"
            f" iterations (rest). Only evaluation is shared by workers.{left_out}"
        ),
        figure=figure,
        data=groups[["group", "runs", "workers", *parts]],
    )
