"""Tables and run directories -> figures: plots/ has those of every sweep, plots/more/ others."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from qdsweep.analysis.figures.archive_profile import archive_profiles, profiles_figure
from qdsweep.analysis.figures.archives import heatmaps, overview, run_pictures
from qdsweep.analysis.figures.bars import importance_figure, timing_figure
from qdsweep.analysis.figures.common_archive import common_archives
from qdsweep.analysis.figures.corrected import corrected_figures
from qdsweep.analysis.figures.curves import learning_curves
from qdsweep.analysis.figures.figure import Drawn, Omitted, read_index, save_figures, save_one
from qdsweep.analysis.figures.search import search_figures
from qdsweep.analysis.figures.style import Look, read_dressed
from qdsweep.analysis.figures.sweep_views import sweep_views
from qdsweep.analysis.search import next_levels, read_search
from qdsweep.analysis.selection import Tables
from qdsweep.errors import BadInput
from qdsweep.records.paths import SweepDir
from qdsweep.records.plan import Plan

MAIN, MORE = "", "more"  # folders below plots/: of every sweep, of some
# How the names of figures begin -> their folder, and what draws them.
Figures = dict[str | tuple[str, ...], tuple[str, Callable[[], Sequence[Drawn | Omitted]]]]


def plot(sweep_dir: Path, runs_dir: Path, *, only: str | None = None) -> None:
    """Draws the figures of a sweep: PDF to print, PNG and SVG for the screen, CSV of the data.

    With `only`, that figure alone is drawn again, and its files are printed.

    Raises:
        BadInput: A table or a run's file is missing, or `figures` of the sweep file names what the
            sweep does not have.
    """
    if only is not None:
        print(*plot_one(sweep_dir, runs_dir, only), sep="\n")
        return
    tables, look, figures = _figures(sweep_dir, runs_dir)
    sweep = SweepDir(sweep_dir)
    with look.style():
        save_figures(sweep.plots, _all(figures, MAIN))
        shutil.rmtree(sweep.plots / MORE, ignore_errors=True)  # figures that it no longer has
        save_figures(sweep.plots / MORE, _all(figures, MORE))
    run_pictures(sweep, tables, runs_dir)


def plot_one(sweep_dir: Path, runs_dir: Path, name: str) -> list[Path]:
    """Draws one figure of a sweep again, and returns the files that it is written to.

    Raises:
        BadInput: As `plot`; or the sweep has no such figure, or one whose data say nothing.
    """
    _, look, figures = _figures(sweep_dir, runs_dir)
    with look.style():
        for beginning, (folder, draw) in figures.items():
            for one in draw() if name.startswith(beginning) else ():
                if one.name != name:
                    continue
                if isinstance(one, Omitted):
                    raise BadInput(f"--only {name}: not drawn: {one.why}")
                return save_one(SweepDir(sweep_dir).plots / folder, one)
    plots = SweepDir(sweep_dir).plots
    indices = [plots / folder / "figures.json" for folder in (MAIN, MORE)]
    known = [one["name"] for path in indices if path.exists() for one in read_index(path)]
    has = f"it has {', '.join(known)}" if known else f"`qdsweep plot {sweep_dir.name}` draws all"
    raise BadInput(f"--only {name}: this sweep has no such figure; {has}")


def _all(figures: Figures, folder: str) -> list[Drawn | Omitted]:
    return [one for place, draw in figures.values() if place == folder for one in draw()]


def _figures(sweep_dir: Path, runs_dir: Path) -> tuple[Tables, Look, Figures]:
    plan, tables, look = read_dressed(sweep_dir)
    sweep = SweepDir(sweep_dir)
    figures: Figures = {
        "overview": (MAIN, lambda: [overview(tables, runs_dir)]),
        "learning_curves": (MAIN, lambda: [learning_curves(tables)]),
        "heatmaps": (MAIN, lambda: [heatmaps(tables, runs_dir)]),
        "archive_profiles": (MAIN, lambda: [archive_profiles(tables, runs_dir)]),
        "search_": (MORE, lambda: search_figures(read_search(sweep, plan), runs_dir)),
        "performance_profiles": (MORE, lambda: profiles_figure(sweep_dir, tables, look)),
        "common_archive": (MORE, lambda: common_archives(tables, runs_dir)),
        "corrected_": (MORE, lambda: corrected_figures(sweep_dir, tables, look)),
        ("parallel_", "slice_", "pairs"): (MORE, lambda: _sweep_views(plan, tables)),
        "importance": (MORE, lambda: importance_figure(sweep_dir, plan)),
        "timing": (MORE, lambda: [timing_figure(tables, runs_dir)]),
    }
    return tables, look, figures


def _sweep_views(plan: Plan, tables: Tables) -> list[Drawn | Omitted]:
    """Returns the views of a sweep; none of a search, whose finalists alone would mislead."""
    return [] if next_levels(plan.levels) else sweep_views(plan, tables)
