"""Runs the benchmarks that have a target, and writes docs/benchmarks.csv, .md and .png.

    python benchmarks/bench.py [--only NAME...]      (`make bench` runs all)

One after the other, on a machine that does nothing else. Nothing is written unless all succeed.
"""

import argparse
import csv
import io
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from platform import python_version

import matplotlib.pyplot as plt
from figures import VARIABLE, table
from matplotlib.ticker import LogLocator, NullLocator

from qdsweep.analysis.figures.style import NOTE, save, style
from qdsweep.analysis.legend import COLORS
from qdsweep.files import write_text
from qdsweep.host.machine import processor
from qdsweep.versions import installed_versions

SCRIPTS = {
    "rollouts": "rollouts.py",
    "atari": "atari.py",
    "lander_workers": "lander_workers.py --ray",
    "start_up": "bare_loop.py --iterations 1 --repeats 5",
    "bare_loop": "bare_loop.py --iterations 10000 --repeats 1",
    "short": "sweeps.py short",
    "dry": "sweeps.py dry",
    "second": "sweeps.py second --scale 0.3",
    "job": "sweeps.py job",
    "large_sweep": "large_sweep.py",
    "merge": "merge.py",
    "aggregation": "aggregation.py",
    "explore": "explore.py",
}
LIBRARIES = (
    "numpy",
    "ribs",
    "gymnasium",
    "box2d",
    "mujoco",
    "ale-py",
    "torch",
    "dask",
    "snakemake",
)
COLUMNS = (
    "script",
    "work",
    "peer",
    "ratio",
    "wanted",
    "met",
    "limit",
    "detail",
    "profile",
    "setting",
)
HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
Row = dict[str, str]


def run(name: str) -> list[Row]:
    """The rows of a script, whose output is shown."""
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder, "rows")
        script, *options = SCRIPTS[name].split()
        words = [sys.executable, HERE / script, *options]
        print(f"--- {name}", flush=True)
        code = subprocess.run(words, env={**os.environ, VARIABLE: str(rows)}).returncode
        if code:
            sys.exit(f"benchmarks/{SCRIPTS[name]}: exit code {code}; nothing is written")
        setting = describe()
        return [
            {key: str(value) for key, value in json.loads(line).items()}
            | {"script": name, "setting": setting}
            for line in rows.read_text().splitlines()
        ]


def describe() -> str:
    """Date, machine and versions."""
    libraries = [f"{name} {version}" for name, version in installed_versions(LIBRARIES).items()]
    versions = [f"python {python_version()}", *libraries]
    return (
        f"{time.strftime('%Y-%m-%d')}, {processor()}, {os.cpu_count()} cores; {', '.join(versions)}"
    )


def as_csv(rows: list[Row]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def as_markdown(rows: list[Row]) -> str:
    """A page: date and machine, a table, and the profiles of missed targets."""
    # One line, unless some scripts were run on another day or elsewhere.
    scripts: dict[str, dict[str, None]] = {}
    for row in rows:
        scripts.setdefault(row["setting"], {})[row["script"]] = None
    lines = ["# Benchmarks", "", "`make bench` measures these values.", ""]
    lines += [
        "A ratio is qdsweep's value divided by that of the peer. Its target shows whether more or",
        "less is better. The limit is the best possible ratio. Each machine follows its scripts.",
        "",
    ]
    lines += [
        setting if len(scripts) == 1 else f"{', '.join(names)}: {setting}  "
        for setting, names in scripts.items()
    ]
    lines += ["", *table(rows)]
    missed = [row for row in rows if row["met"] == "no"]
    if missed:
        lines += ["", "The parts of the time where a target is not reached:", ""]
        lines += [f"- {row['work']}: {row['profile']}" for row in missed]
    return "\n".join(lines) + "\n"


def times_better(row: Row) -> float:
    """How many times better than its target a ratio is, whichever direction is better."""
    sign, bound = row["wanted"].split()
    ratio = float(row["ratio"])
    return ratio / float(bound) if sign == ">=" else float(bound) / ratio


def draw(rows: list[Row], stem: Path) -> None:
    """A line for each value with a target, from the target to the value."""
    rows = [row for row in rows if row["wanted"]]
    with style():
        figure, axes = plt.subplots(figsize=(10, 1.1 + 0.46 * len(rows)), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.12, h_pad=0.1)
        for met, color, mark, dashes, label in (
            ("yes", COLORS[0], "o", "-", "reached"),
            ("no", COLORS[1], "X", ":", "not reached"),
        ):
            points = [(times_better(row), y) for y, row in enumerate(rows) if row["met"] == met]
            if points:
                x, y = zip(*points, strict=True)
                axes.hlines(y, 1, x, color=color, linewidth=2, linestyle=dashes)
                axes.plot(x, y, mark, color=color, markersize=8, label=label)
        for y, row in enumerate(rows):
            place, ratio = times_better(row), float(row["ratio"])
            mine = f"{ratio:.3g}, target {row['wanted'].replace('<=', '≤').replace('>=', '≥')}"
            axes.annotate(
                mine if row["met"] == "yes" else f"{mine}: NOT REACHED",
                (max(place, 1), y),
                xytext=(9, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
            )
            name, peer = (text.replace("`", "") for text in (row["work"], row["peer"]))
            for text, rise, look in (
                (name, 6, {"fontsize": 8.5}),
                (f"compared with {peer}", -6, NOTE),
            ):
                axes.annotate(
                    textwrap.shorten(text, 76, placeholder=" ..."),
                    (0, y),
                    xycoords=("axes fraction", "data"),
                    xytext=(-8, rise),
                    textcoords="offset points",
                    ha="right",
                    va="center",
                    **look,
                )
        axes.axvline(1, color="0.3", linewidth=1)
        axes.set_xscale("log")
        axes.margins(x=0.05)
        low, high = axes.get_xlim()
        low, high = min(low, 0.9), max(high, 1.5)
        axes.set_xlim(low, high * (high / low) ** 0.35)  # with room for the values
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
        axes.set_axisbelow(True)
        axes.set_xlabel("times better than the target (1: just reached; further right is better)")
        figure.legend(loc="outside upper right", ncols=2)
        save(figure, stem, (".png",))
        plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=SCRIPTS, default=list(SCRIPTS))
    chosen = parser.parse_args().only
    table = DOCS / "benchmarks.csv"
    before: list[Row] = []
    if table.exists():
        before = list(csv.DictReader(table.read_text().splitlines()))
    measured = {name: run(name) for name in SCRIPTS if name in chosen}
    rows = []
    for name in SCRIPTS:
        rows += measured.get(name) or [row for row in before if row["script"] == name]
    write_text(table, as_csv(rows))
    write_text(table.with_suffix(".md"), as_markdown(rows))
    draw(rows, table.with_suffix(""))


if __name__ == "__main__":
    main()
