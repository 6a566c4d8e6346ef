"""Which swept value of a search matters: bars of both importances, and what chance would give."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from qdsweep.analysis.figures.figure import Drawn, Omitted
from qdsweep.analysis.figures.marks import COLORS
from qdsweep.analysis.figures.search_curves import SECTION
from qdsweep.analysis.figures.style import add_heading, figure_width, wrap
from qdsweep.analysis.tables.importance_table import BOLD, NAME, TITLE
from qdsweep.analysis.tables.sheet import read_sheet
from qdsweep.files import read_csv
from qdsweep.records.plan import Plan
from qdsweep.records.sweep_dir import SweepDir

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MOST_NAMES = 12
_BARS = {"ped_anova": "PED-ANOVA", "fanova": "fANOVA"}


def importance_figure(sweep_dir: Path, plan: Plan) -> list[Drawn | Omitted]:
    """Returns the figure of `tables/importance.csv`; none where there is no such table."""
    from matplotlib.figure import Figure

    folder = SweepDir(sweep_dir).tables
    if not (folder / f"{NAME}.csv").exists():
        return []
    data = read_csv(
        folder / f"{NAME}.csv", "Run `snakemake` first.", dtype={"of": str, "name": str}
    )
    note = read_sheet(folder / f"{NAME}.json").note
    if data.empty:
        return [Omitted(NAME, SECTION, TITLE, note.rstrip("."))]
    parts = [(str(of), rows.head(MOST_NAMES)) for of, rows in data.groupby("of", sort=False)]
    width = figure_width(3.6 * len(parts) + 0.6)
    height = 0.46 * max(len(rows) for _, rows in parts) + 1.1
    figure = Figure(figsize=(width, height), layout="constrained")
    panels = figure.subfigures(1, len(parts), squeeze=False)[0]
    for panel, (of, rows) in zip(panels, parts, strict=True):
        ax = panel.subplots()
        _bars(ax, rows, [wrap(plan.called(name), width / len(parts) / 3) for name in rows["name"]])
        settings, best = rows["settings"].iat[0], rows["best"].iat[0]
        heading = f"{of}: {settings} settings, the best {best} against all"
        add_heading(panel, heading, width / len(parts))
    handles, labels = ax.get_legend_handles_labels()
    handles, labels = handles[1:] + handles[:1], labels[1:] + labels[:1]  # lines come first
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return [Drawn(NAME, SECTION, TITLE, note.replace(f" {BOLD}", ""), figure, data)]


def _bars(ax: "Axes", data: "pd.DataFrame", names: list[str]) -> None:
    places = np.arange(len(data))
    for shift, color, (column, label) in zip((-0.19, 0.19), COLORS, _BARS.items(), strict=False):
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
