"""Tables and run directories -> figures: plots/ has those of every sweep, plots/more/ others."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from qdsweep.analysis.data import SweepData
from qdsweep.analysis.figures.archive_pictures import heatmaps, overview, run_pictures
from qdsweep.analysis.figures.archive_profile import archive_profiles, performance_profiles
from qdsweep.analysis.figures.bars import importance_figure, timing_figure
from qdsweep.analysis.figures.common_archive import common_archives
from qdsweep.analysis.figures.corrected import corrected_figures
from qdsweep.analysis.figures.figure import (
    Drawn,
    Omitted,
    read_index,
    remove_others,
    save_figures,
    save_one,
)
from qdsweep.analysis.figures.learning_curves import learning_curves
from qdsweep.analysis.figures.search_figures import search_figures
from qdsweep.analysis.figures.style import style
from qdsweep.analysis.figures.sweep_views import sweep_views
from qdsweep.errors import BadInput
from qdsweep.ornaments import Ornament

MAIN, MORE = "", "more"  # folders below plots/: figures of every sweep, and of some
# How the names of figures begin -> their folder, and the function that draws them.
FIGURES: dict[
    str | tuple[str, ...],
    tuple[str, Callable[[SweepData], "Drawn | Sequence[Drawn | Omitted]"]],
] = {
    "overview": (MAIN, overview),
    "learning_curves": (MAIN, learning_curves),
    "heatmaps": (MAIN, heatmaps),
    "archive_profiles": (MAIN, archive_profiles),
    "search_": (MORE, search_figures),
    "performance_profiles": (MORE, performance_profiles),
    "common_archive": (MORE, common_archives),
    "corrected_": (MORE, corrected_figures),
    ("parallel_", "slice_", "pairs"): (MORE, sweep_views),
    "importance": (MORE, importance_figure),
    "timing": (MORE, timing_figure),
}


def _ornament(beginning: str | tuple[str, ...]) -> "Ornament[[SweepData], Any]":
    """Returns the function of figures, which gives the reason if they cannot be drawn."""
    name = (beginning if isinstance(beginning, str) else beginning[0]).strip("_")
    title = name.replace("_", " ").capitalize()
    instead: Any = lambda why, data: [Omitted(name, "", title, why)]  # noqa: E731
    return Ornament(FIGURES[beginning][1], f"the figure {name}", instead)


_ORNAMENTS = {beginning: _ornament(beginning) for beginning in FIGURES}


def plot(sweep_dir: Path, runs_dir: Path, *, only: str | None = None) -> None:
    """Draws the figures of a sweep: PDF to print, PNG and SVG for the screen, CSV of the data.

    With `only`, only that figure is drawn, and its files are printed.

    Raises:
        BadInput: A table or a run's file is missing, or `figures` of the sweep file names what the
            sweep does not have.
    """
    if only is not None:
        print(*plot_one(sweep_dir, runs_dir, only), sep="\n")
        return
    data = SweepData.read(sweep_dir, runs_dir)
    plots = data.sweep.plots
    with style(data.plan.figures.column_width):
        save_figures(plots, _drawn(data, MAIN), declared=True)
        more = save_figures(plots / MORE, _drawn(data, MORE))
        remove_others(plots / MORE, more)
    data.sweep.archives.mkdir(parents=True, exist_ok=True)
    run_pictures(data)


def plot_one(sweep_dir: Path, runs_dir: Path, name: str) -> list[Path]:
    """Draws one figure of a sweep again, and returns the files that it is written to.

    Raises:
        BadInput: As `plot`; or the sweep has no such figure, or one whose data show nothing.
    """
    data = SweepData.read(sweep_dir, runs_dir)
    plots = data.sweep.plots
    with style(data.plan.figures.column_width):
        for folder in (MAIN, MORE):
            for figure in _drawn(data, folder, name):
                if figure.name != name:
                    continue
                if isinstance(figure, Omitted):
                    raise BadInput(f"--only {name}: not drawn: {figure.why}")
                return save_one(plots / folder, figure)
    indices = [plots / folder / "figures.json" for folder in (MAIN, MORE)]
    known = [entry["name"] for path in indices if path.exists() for entry in read_index(path)]
    has = f"it has {', '.join(known)}" if known else f"`qdsweep plot {data.sweep.name}` draws all"
    raise BadInput(f"--only {name}: this sweep has no such figure; {has}")


def _drawn(data: SweepData, folder: str, name: str | None = None) -> Iterator[Drawn | Omitted]:
    """Yields the figures of a folder; with a name only what is drawn together with that figure."""
    for beginning, (place, _) in FIGURES.items():
        if place == folder and (name is None or name.startswith(beginning)):
            figures = _ORNAMENTS[beginning](data)
            yield from [figures] if isinstance(figures, Drawn) else figures
