"""The time of a finished sweep: its figures."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from qdsweep.analysis.figures.figure import Drawn
from qdsweep.analysis.figures.panels import lay_out
from qdsweep.analysis.figures.style import (
    figure_width,
    level,
    line_style,
    wrap,
)
from qdsweep.analysis.selection import Tables
from qdsweep.analysis.tables.run_times import (
    PHASES,
    SHORTEST,
    group_times,
    run_times,
    worker_table,
)
from qdsweep.analysis.tables.timing_tables import node_cores
from qdsweep.analysis.text import plural
from qdsweep.scaling.amdahl import WORTHWHILE, speedup

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SECTION = "Time"
MAX_BARS = 24
MAX_CURVES, MAX_PANELS = 12, 6
# Phase -> what the figure calls it, and its colour.
_BARS = {
    "evaluate": ("evaluate", "#56B4E9"),
    "ask": ("ask", "#E69F00"),
    "tell": ("tell", "#D55E00"),
    "reload": ("reload files", "#009E73"),
    "rest": ("rest", "#999999"),
}


def timing_figures(tables: Tables, runs_dir: Path) -> list[Drawn]:
    """Draws where the time of the groups goes, and what more workers would bring.

    Args:
        tables: The sweep's tables.
        runs_dir: `results/runs`.
    """
    runs = run_times(tables, runs_dir)
    return [_phases(group_times(runs)), *_amdahl(worker_table(runs, node_cores()), tables)]


def _phases(groups: "pd.DataFrame") -> Drawn:
    """Seconds of each phase, a bar a group."""
    shown = groups.head(MAX_BARS)
    width = figure_width(8)
    labels = [wrap(group, 0.4 * width, 8) for group in shown["group"]]
    lines = sum(label.count("\n") + 1.3 for label in labels)
    names = [name for name, _ in _BARS.values()]
    figure, (part,) = lay_out({"": names}, 1, width, 0.8 + 0.19 * lines)
    ax = part.panel.subplots()
    left = np.zeros(len(shown))
    for phase, (name, color) in _BARS.items():
        seconds = shown[f"{phase}_mean"].to_numpy(float)
        ax.barh(np.arange(len(shown)), seconds, 0.7, left, color=color, label=name)
        left += seconds
    ax.set_yticks(np.arange(len(shown)), labels)
    ax.invert_yaxis()
    ax.set_xlim(0, 1.02 * left.max())
    ax.set_xlabel("Seconds of a run")
    ax.grid(True, axis="x")
    ax.set_axisbelow(True)
    part.add_legend(ax, "")
    parts = [f"{phase}_{part}" for phase in (*PHASES, "rest") for part in ("mean", "se")]
    return Drawn(
        name="timing",
        section=SECTION,
        title="Where the time goes",
        caption=(
            "Mean seconds of a run in each phase of its iterations, and between them (rest). Only"
            f" evaluation is shared by workers.{_left_out(groups, MAX_BARS)}"
        ),
        figure=figure,
        data=groups[["group", "runs", "workers", *parts]],
    )


def _amdahl(workers: "pd.DataFrame", tables: Tables) -> list[Drawn]:
    """Speed-up over the number of workers by Amdahl's law, a curve a group, a panel a facet."""
    import pandas as pd

    told = workers[workers["recommended"].notna()]
    if told.empty:
        return []
    panels = {
        facet: rows.head(MAX_CURVES)
        for facet, rows in told.groupby(
            [tables.facets.get(g, "") for g in told["group"]], sort=False
        )
    }
    panels = dict(list(panels.items())[:MAX_PANELS])
    shown = pd.concat(panels.values())
    most = int(min(max(4, 4 * shown["recommended"].max()), max(4, shown["batch"].max())))
    width = figure_width(6.5 if len(panels) == 1 else 9)
    columns = min(len(panels), max(int(width / 2.9), 1), 3)
    labels = {
        facet: ["ideal", *(tables.series[group] for group in rows["group"])]
        for facet, rows in panels.items()
    }
    figure, parts = lay_out(labels, columns, width, 0.55 * width / columns + 0.3)
    n = np.geomspace(1, most, 200)
    axes = []
    for part, rows in zip(parts, panels.values(), strict=True):
        ax = part.panel.subplots()
        ax.plot(n, n, color="0.6", linewidth=1, linestyle=(0, (2, 2)), label="ideal")
        for row in rows.to_dict("records"):
            look = line_style(tables.position[row["group"]])
            own = n[n <= row["batch"]]
            label = tables.series[row["group"]]
            ax.plot(own, speedup(row["serial"], own), label=label, **look)
            dot = {"color": look["color"], "markersize": 6, "clip_on": False, "zorder": 3}
            ax.plot(row["recommended"], row["speedup"], "o", **dot)
        _log2(ax, most)
        part.add_legend(ax, "")
        axes.append(ax)
    level(axes)
    n = np.unique(n.round().astype(int))
    curves = [
        pd.DataFrame({"group": row["group"], "workers": n, "speedup": speedup(row["serial"], n)})
        for row in told.to_dict("records")
    ]
    data = pd.concat(curves, ignore_index=True)
    short = len(workers) - len(told)
    untold = f" {plural(short, 'group')} of runs below {SHORTEST:g} s cannot tell." if short else ""
    return [
        Drawn(
            name="amdahl",
            section=SECTION,
            title="What more workers would bring",
            caption=(
                "Speed-up of a run over one worker by Amdahl's law, with the serial fraction that"
                f" was measured. Dots: the most workers with an efficiency of at least"
                f" {WORTHWHILE:.0%}. A curve ends where every solution of an iteration has a worker"
                f" of its own.{untold}{_left_out(told, len(shown))}"
            ),
            figure=figure,
            data=data.assign(efficiency=data["speedup"] / data["workers"]),
        )
    ]


def _log2(ax: "Axes", most: int) -> None:
    """Workers and speed-up in powers of two."""
    from matplotlib.ticker import FuncFormatter, NullLocator

    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    ax.set_xlim(1, most)
    ax.set_ylim(1, None)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axis.set_minor_locator(NullLocator())
    ax.set_xlabel("Workers of a run")
    ax.set_ylabel("Speed-up over one worker")
    ax.grid(True)


def _left_out(table: "pd.DataFrame", limit: int) -> str:
    if len(table) <= limit:
        return ""
    return f" Shown: the first {limit} of {plural(len(table), 'group')}; the data have all."
