"""Draws docs/architecture.svg: python docs/architecture.py."""

from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

plt.rcParams |= {"svg.hashsalt": "qdsweep", "svg.fonttype": "path", "font.size": 9}
WIDTH, HEIGHT = 2.2, 1.05
# Column and row of each box, its title and its text; files have another colour.
FILES, WORK = "#e8f0fa", "#fdf0e0"
BOXES = {
    "config": (0, 2, FILES, "config", "experiment, algorithm,\ndomain, sweep: YAML"),
    "sweep": (1, 2, WORK, "sweep", "notation or search:\na table of runs, ids"),
    "plan": (2, 2, WORK, "start", "work left, its cost,\nimpossible settings"),
    "jobs": (3, 2, WORK, "Snakemake", "one job per run: here,\non Slurm, in an image"),
    "loop": (3, 1, WORK, "run", "ask, evaluate, tell;\nreload file"),
    "engine": (2, 1, WORK, "engine", "serial, processes,\nDask, Ray, MPI"),
    "domain": (1, 1, WORK, "domain", "objective and measures\nof a batch"),
    "runs": (3, 0, FILES, "results/runs/ID", "metrics, archive,\nhistory, state"),
    "tables": (2, 0, FILES, "tables", "runs, groups,\ntests"),
    "plots": (1, 0, FILES, "figures", "curves, archives,\nanimations"),
    "report": (0, 0, FILES, "report.html", "one page, and\nthe export"),
}
# From, to, and whether results come back.
ARROWS = [
    ("config", "sweep", False),
    ("sweep", "plan", False),
    ("plan", "jobs", False),
    ("jobs", "loop", False),
    ("loop", "engine", True),
    ("engine", "domain", True),
    ("loop", "runs", False),
    ("runs", "tables", False),
    ("tables", "plots", False),
    ("plots", "report", False),
]


def main() -> None:
    """Draws it."""
    figure, axes = plt.subplots(figsize=(9.4, 4.3))
    for column, row, colour, title, text in BOXES.values():
        x, y = column * 2.75, row * 1.6
        look = {"boxstyle": "round,pad=0,rounding_size=0.12", "facecolor": colour}
        axes.add_patch(FancyBboxPatch((x, y), WIDTH, HEIGHT, edgecolor="#5a6b7d", **look))
        axes.text(x + WIDTH / 2, y + 0.82, title, ha="center", va="center", weight="bold")
        axes.text(x + WIDTH / 2, y + 0.38, text, ha="center", va="center", fontsize=8)
    for start, end, both in ARROWS:
        (a, b, *_), (c, d, *_) = BOXES[start], BOXES[end]
        x, y = a * 2.75 + WIDTH / 2, b * 1.6 + HEIGHT / 2
        step, rise = c - a, d - b
        head = (c * 2.75 + WIDTH / 2 - step * WIDTH / 2, d * 1.6 + HEIGHT / 2 - rise * HEIGHT / 2)
        tail = (x + step * WIDTH / 2, y + rise * HEIGHT / 2)
        look = {"mutation_scale": 12, "color": "#33404d", "shrinkA": 1, "shrinkB": 1}
        axes.add_patch(FancyArrowPatch(tail, head, arrowstyle="<|-|>" if both else "-|>", **look))
    axes.text(0, 1.6 + 0.72, "blue: files", color="#2c5f9e", fontsize=8)
    axes.text(0, 1.6 + 0.42, "orange: computation", color="#b0691a", fontsize=8)
    axes.set(xlim=(-0.05, 3 * 2.75 + WIDTH + 0.05), ylim=(-0.05, 3.2 + HEIGHT + 0.05))
    axes.set_aspect("equal")
    axes.axis("off")
    figure.patch.set_facecolor("white")
    out = Path(__file__).with_suffix(".svg")
    figure.savefig(out, bbox_inches="tight", metadata={"Date": None})
    out.write_text("\n".join(line.rstrip() for line in out.read_text().splitlines()) + "\n")


if __name__ == "__main__":
    main()
