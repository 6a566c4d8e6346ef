"""Performance profiles: how large a part of the runs reaches a score, over several tasks."""

from pathlib import Path
from typing import TYPE_CHECKING

from qdsweep.analysis.figures.appearance import Look
from qdsweep.analysis.figures.figure import Drawn
from qdsweep.analysis.figures.marks import Block, place_mark
from qdsweep.analysis.figures.panels import MAX_LINES, lay_out
from qdsweep.analysis.figures.style import draw_line, figure_width, short_numbers
from qdsweep.analysis.selection import Tables
from qdsweep.analysis.tables.over_tasks import task_score
from qdsweep.analysis.text import plural
from qdsweep.files import read_csv
from qdsweep.records.sweep_dir import SweepDir

if TYPE_CHECKING:
    import pandas as pd


def profiles_figure(sweep_dir: Path, tables: Tables, look: Look) -> list[Drawn]:
    """Draws the performance profiles of `tables/profiles.csv`; nothing where there are none."""
    path = SweepDir(sweep_dir).tables / "profiles.csv"
    if not path.exists():
        return []
    # Names stay text, even one that looks like a number or like "null".
    data = read_csv(path, "Run `snakemake` first.", dtype={"algorithm": str})
    area = data.groupby("algorithm", sort=False)["fraction"].mean()
    every = list(area.index)
    best = set(area.nlargest(MAX_LINES).index)
    labels = {name: look.called(name) for name in every if name in best}
    data = data[data["algorithm"].isin(best)]
    width = figure_width(5.5)
    groups = {series: group for group, series in reversed(tables.series.items())}
    if set(labels.values()) <= set(groups):
        order = list(groups)[::-1]
        shown = sorted(labels, key=lambda name: order.index(labels[name]))
        marks = [tables.marks[groups[labels[name]]] for name in shown]
        legend = tables.marks.legend([groups[labels[name]] for name in shown])
    else:
        shown = list(labels)
        marks = [place_mark(place) for place in range(len(shown))]
        legend = [Block("", [(labels[n], mark) for n, mark in zip(shown, marks, strict=True)])]
    figure, (part,) = lay_out({"": legend}, 1, width, 0.6 * width + 0.4)
    ax = part.panel.subplots()
    for algorithm, mark in zip(shown, marks, strict=True):
        line = data[data["algorithm"] == algorithm]
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
    part.add_legend(f"{plural(len(tables.score_scales), 'task')}{_band(data)}")
    caption = (
        "Performance profiles (Agarwal et al. 2021): the fraction of runs, over all tasks, whose"
        f" score is above τ; the higher the better. Scores are {task_score(tables.rank).text}."
    )
    if _band(data):
        caption += " Bands: 95 % intervals over seeds, tasks being strata."
    if len(shown) < len(every):
        caption += f" Shown: the {len(shown)} of {len(every)} with the largest area."
    data = data.assign(algorithm=data["algorithm"].map(labels))
    return [
        Drawn("performance_profiles", "Comparison", "Performance profiles", caption, figure, data)
    ]


def _band(data: "pd.DataFrame") -> str:
    return ", 95 % interval" if data["low"].notna().any() else ""
