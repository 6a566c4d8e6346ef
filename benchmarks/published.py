"""Writes docs/published.csv, .md and .png: published values, and the same values from runs.

    python benchmarks/published.py [RESULTS]      (`make published` computes the runs first)

With a folder of results, its finished runs replace those rows of the table. Without one, only the
page and the picture are written. The text above the first table of the page is kept.
"""

import csv
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from qdsweep.analysis.figures.style import NOTE, save, style
from qdsweep.analysis.legend import COLORS, Called, group_names
from qdsweep.analysis.sheet import as_markdown, number_cell
from qdsweep.cli import main
from qdsweep.features.published.tables import (
    compare_published,
    counted,
    published_sheet,
    within_margin,
)
from qdsweep.features.published.verdicts import DIFFERS, EQUIVALENT
from qdsweep.files import write_text
from qdsweep.planning.request import Given, read_sweep
from qdsweep.planning.rows import plan_data
from qdsweep.records.paths import Results
from qdsweep.records.plan import Plan
from qdsweep.sweep.runs import table_of_runs
from qdsweep.text import duration, number

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
TABLE = DOCS / "published.csv"
START = "<!-- benchmarks/published.py writes the rest of this page -->"
SWEEPS = {
    "published_sphere": "pyribs' sphere example",
    "published_cma_mae": "CMA-MAE",
    "published_dqd": "Differentiable quality diversity",
}
DIGEST = "archive_digest"
DIGITS = 12  # of a digest on the page


class Part(NamedTuple):
    """A sweep's runs.

    Attributes:
        plan: The sweep.
        names: What readers see of its groups.
        values: A row of `compare` for each published value.
        runs: Group -> its rows of the table.
    """

    plan: Plan
    names: Called
    values: pd.DataFrame
    runs: dict[str, list[dict[str, str]]]


def read_part(name: str, rows: list[dict[str, str]]) -> Part:
    """Compares a sweep's rows of the table with the published values."""
    settings = read_sweep(Given({}, files=[ROOT / f"config/sweeps/{name}.yaml"]))
    sweep = table_of_runs(settings.experiment, settings.sweep, excluded=settings.exclude)
    plan = Plan.of(plan_data(settings, sweep))
    metrics = sorted({entry.metric for entry in plan.published})
    known = {row["id"]: row for row in rows if row["sweep"] == name}
    runs: dict[str, list[dict[str, str]]] = {}
    for row in plan.computed:
        if row.run in known:
            runs.setdefault(row.group, []).append(known[row.run])
    summary = pd.DataFrame(
        [
            {"group": group, "id": row["id"], "status": "finished"}
            | {metric: float(row[metric]) for metric in metrics}
            for group, members in runs.items()
            for row in members
        ],
        columns=["group", "id", "status", *metrics],
    )
    return Part(plan, group_names(plan), compare_published(plan, summary), runs)


def as_page(parts: dict[str, Part]) -> list[str]:
    """The verdicts, a table of values for each sweep, and the digests."""
    values = pd.concat([part.values.assign(sweep=name) for name, part in parts.items()])
    words = values.groupby(["sweep", "group"])["verdict"]
    twice, same = words.size() == 2, words.nunique() == 1
    times = {
        row["id"]: float(row["seconds"])
        for part in parts.values()
        for rows in part.runs.values()
        for row in rows
    }
    lines = ["", f"Verdicts of {len(values)} values: {counted(values['verdict'])}."]
    alike = words.first()[twice & same]
    lines += [
        f"{twice.sum()} groups have two values, QD score and coverage, which are one fact twice.",
        f"In {len(alike)} of them both have the same verdict ({counted(alike)}).",
        f"Equivalent, but significantly different within the margin: {within_margin(values)}.",
        f"The {len(times)} runs took {duration(sum(times.values()))} of one core.",
    ]
    for name, part in parts.items():
        lines += ["", f"## {SWEEPS[name]}", "", f"`config/sweeps/{name}.yaml`", "", table(part)]
    lines += ["## Digests", ""]
    lines += [
        f"The first {DIGITS} digits of each archive's digest, in the order of the seeds.",
        "`docs/published.csv` has all digits.",
    ]
    for name, part in parts.items():
        lines += ["", f"| {SWEEPS[name]} | digests |", "|---|---|"]
        lines += [
            f"| {part.names.label(group)} | {' '.join(row[DIGEST][:DIGITS] for row in rows)} |"
            for group, rows in part.runs.items()
        ]
    return lines


def table(part: Part) -> str:
    """Returns the report's table of published values, with the mean time of a run."""
    times = {
        part.names.label(group): np.mean([float(row["seconds"]) for row in rows])
        for group, rows in part.runs.items()
    }
    sheet = published_sheet(part.plan, part.values)
    column = [times.get(row[0].text, math.nan) for row in sheet.rows]
    rows = [
        [*row, number_cell(number(time), time)]
        for row, time in zip(sheet.rows, column, strict=True)
    ]
    sheet = replace(sheet, columns=[*sheet.columns, "Seconds per run"], rows=rows)
    text, _, sources = as_markdown(sheet).partition(" Sources: ")
    listed = sources.replace(" \\[", "\n- \\[")
    return f"{text}\n\n- {listed}"


def percent(value: float, row: dict[str, Any]) -> float:
    """Returns a difference in percent of the published value."""
    return 100 * value / abs(row["published"])


EDGE = 15.0  # the picture's largest difference [%]
MARKED = {EQUIVALENT: COLORS[0], DIFFERS: COLORS[1]}


def draw(parts: dict[str, Part], stem: Path) -> None:
    """A point for each value: its difference from the published one, with its 90 % interval."""
    heights = [part.values["group"].nunique() for part in parts.values()]
    with style():
        figure, panels = plt.subplots(
            1, len(parts), figsize=(15, 1.2 + 0.26 * max(heights)), layout="constrained"
        )
        figure.get_layout_engine().set(w_pad=0.15)
        for axes, (name, part) in zip(panels, parts.items(), strict=True):
            groups = list(dict.fromkeys(part.values["group"]))
            for row in part.values.to_dict("records"):
                second = row["metric"] == "coverage"
                y = groups.index(row["group"]) + (0.17 if second else -0.17)
                width = 100 * row["margin"]
                axes.barh(y, 2 * width, left=-width, height=0.34, color="0.9")
                low, x, high = (percent(row[name], row) for name in ("low", "difference", "high"))
                if math.isnan(x):
                    continue
                color = MARKED.get(row["verdict"], "0.5")
                axes.hlines(y, max(-EDGE, low), min(EDGE, high), color=color, linewidth=1)
                axes.plot(
                    max(-EDGE, min(EDGE, x)),
                    y,
                    ("<" if x < 0 else ">") if abs(x) > EDGE else ("s" if second else "o"),
                    color=color,
                    markersize=5,
                )
            axes.axvline(0, color="0.5", linewidth=0.7)
            axes.set(title=SWEEPS[name], xlim=(-EDGE - 1, EDGE + 1), xlabel="difference, %")
            labels = map(part.names.label, groups)
            axes.set_yticks(range(len(groups)), labels, fontsize=7.5)
            axes.set_ylim(len(groups) - 0.4, -0.6)
        figure.supxlabel(
            "Circles: QD score. Squares: coverage. Lines: 90 % intervals. Grey bars: the margin. "
            "Blue: equivalent. Orange: differs. Grey: undecided. Arrows, and lines that end at "
            f"{EDGE:g} %: beyond. Rows without points: no results.",
            **NOTE,
        )
        save(figure, stem, (".png",))


def write(results: Path | None) -> None:
    """Writes the table, the page and the picture."""
    if results:
        started = [name for name in SWEEPS if Results(results).sweep(name).plan.exists()]
        if main(["audit", str(TABLE), "--results", str(results), "--add", *started]):
            sys.exit(f"{TABLE} is not changed")
    with TABLE.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    parts = {name: read_part(name, rows) for name in SWEEPS}
    page = DOCS / "published.md"
    text, start, _ = page.read_text(encoding="utf-8").partition(START)
    assert start, f"{page}: the line {START} is missing"
    write_text(page, text + "\n".join([START, *as_page(parts)]) + "\n")
    draw(parts, DOCS / "published")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
