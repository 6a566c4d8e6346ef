"""Tables and run directories -> figures, and their captions in plots/captions.json."""

import json
from pathlib import Path

from qdsweep.analysis.archive_figures import heatmaps, overview, run_figure
from qdsweep.analysis.learning_curves import learning_curves
from qdsweep.analysis.load import load
from qdsweep.analysis.partial import results_of
from qdsweep.analysis.selection import read_tables
from qdsweep.analysis.style import save, style
from qdsweep.files import write_text


def plot(sweep_dir: Path, runs_dir: Path) -> None:
    """Draws the figures of a sweep: PDF to print, PNG and SVG for the screen.

    `plots/archives/ID.png` of a run is drawn only if it is older than the run's archive.

    Args:
        sweep_dir: `results/sweeps/NAME`, with the tables of `aggregate`.
        runs_dir: `results/runs`.

    Raises:
        BadInput: A table or a run's file is missing.
    """
    tables = read_tables(sweep_dir)
    plots = sweep_dir / "plots"
    with style():
        figures = {
            "overview": overview(tables, runs_dir),
            "learning_curves": learning_curves(tables),
            "heatmaps": heatmaps(tables, runs_dir),
        }
        for name, (figure, _) in figures.items():
            save(figure, plots / name, (".pdf", ".png", ".svg"))
        for run_id in tables.with_results["id"].unique():
            plot_run(results_of(runs_dir / run_id), plots / "archives" / f"{run_id}.png")
    captions = {name: caption for name, (_, caption) in figures.items()}
    write_text(plots / "captions.json", json.dumps(captions, indent=2, ensure_ascii=False) + "\n")


def plot_run(run_dir: Path, picture: Path) -> None:
    """Draws a run's archive unless `picture` is newer than it."""
    run = load(run_dir)
    archive = run_dir / "archive.npz"
    if picture.exists() and picture.stat().st_mtime >= archive.stat().st_mtime:
        return
    figure = run_figure(run)
    figure.set_dpi(100)
    save(figure, picture.with_suffix(""), (picture.suffix,))
