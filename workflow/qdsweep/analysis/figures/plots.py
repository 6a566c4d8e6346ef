"""Tables and run directories -> figures: plots/ has those of every sweep, plots/more/ others."""

import shutil
from collections.abc import Callable
from pathlib import Path

from qdsweep.analysis.figures.appearance import Look, read_dressed
from qdsweep.analysis.figures.archive_figures import heatmaps, overview, run_figure
from qdsweep.analysis.figures.archive_profile import archive_profiles
from qdsweep.analysis.figures.common_archive import common_archives
from qdsweep.analysis.figures.corrected import corrected_figures
from qdsweep.analysis.figures.figure import Drawn, save_figures, save_one
from qdsweep.analysis.figures.learning_curves import learning_curves
from qdsweep.analysis.figures.profiles_figure import profiles_figure
from qdsweep.analysis.figures.style import save, style
from qdsweep.analysis.figures.sweep_views import sweep_views
from qdsweep.analysis.figures.timing import timing_figure
from qdsweep.analysis.selection import Tables
from qdsweep.errors import BadInput
from qdsweep.experiment.load import load
from qdsweep.records.run_dir import RunDir, RunFiles
from qdsweep.records.sweep_dir import SweepDir

Draw = Callable[[], Drawn]
DrawMore = Callable[[], list[Drawn]]


def plot(sweep_dir: Path, runs_dir: Path, *, only: str | None = None) -> None:
    """Draws the figures of a sweep: PDF to print, PNG and SVG for the screen, CSV of the data.

    `plots/archives/ID.png` of a run is drawn only if it is older than the run's archive.

    Args:
        sweep_dir: `results/sweeps/NAME`, with the tables of `aggregate`.
        runs_dir: `results/runs`.
        only: One figure, which alone is drawn again; its files are printed.

    Raises:
        BadInput: A table or a run's file is missing, or `figures` of the sweep file names what the
            sweep does not have.
    """
    if only is not None:
        print(*plot_one(sweep_dir, runs_dir, only), sep="\n")
        return
    tables, look, main, further = _figures(sweep_dir, runs_dir)
    sweep = SweepDir(sweep_dir)
    plots = sweep.plots
    more = plots / "more"
    with look.style(tables):
        save_figures(plots, [draw() for draw in main.values()])
        shutil.rmtree(more, ignore_errors=True)  # figures that the sweep no longer has
        save_figures(more, [one for draw in further.values() for one in draw()])
    with style():
        for run_id in tables.with_results["id"].unique():
            plot_run(RunDir(runs_dir / run_id).results, sweep.archives / f"{run_id}.png")


def plot_one(sweep_dir: Path, runs_dir: Path, name: str) -> list[Path]:
    """Draws one figure of a sweep again.

    Returns:
        The files that it is written to.

    Raises:
        BadInput: As `plot`; or the sweep has no such figure.
    """
    tables, look, main, further = _figures(sweep_dir, runs_dir)
    plots = SweepDir(sweep_dir).plots
    with look.style(tables):
        if name in main:
            return save_one(plots, main[name]())
        for beginnings, draw in further.items():
            for one in draw() if name.startswith(beginnings) else ():
                if one.name == name:
                    return save_one(plots / "more", one)
        known = [*main, *(one.name for draw in further.values() for one in draw())]
    raise BadInput(f"--only {name}: this sweep has no such figure; it has {', '.join(known)}")


def _figures(
    sweep_dir: Path, runs_dir: Path
) -> tuple[Tables, Look, dict[str, Draw], dict[tuple[str, ...], DrawMore]]:
    """Returns tables, their look, the figures of every sweep by name, others by prefix of names."""
    plan, tables, look = read_dressed(sweep_dir)
    main: dict[str, Draw] = {
        "overview": lambda: overview(tables, runs_dir),
        "learning_curves": lambda: learning_curves(tables),
        "heatmaps": lambda: heatmaps(tables, runs_dir),
        "archive_profiles": lambda: archive_profiles(tables, runs_dir),
    }
    further: dict[tuple[str, ...], DrawMore] = {
        ("performance_profiles",): lambda: profiles_figure(sweep_dir, tables, look),
        ("common_archive",): lambda: common_archives(tables, runs_dir),
        ("corrected_",): lambda: corrected_figures(sweep_dir, tables, look),
        ("parallel_", "slice_", "pairs"): lambda: sweep_views(plan, tables),
        ("timing",): lambda: [timing_figure(tables, runs_dir)],
    }
    return tables, look, main, further


def plot_run(files: RunFiles, picture: Path) -> None:
    """Draws a run's archive unless `picture` is newer than it."""
    run = load(files.path)
    if picture.exists() and picture.stat().st_mtime >= files.archive.stat().st_mtime:
        return
    figure = run_figure(run)
    figure.set_dpi(100)
    save(figure, picture.with_suffix(""), (picture.suffix,))
