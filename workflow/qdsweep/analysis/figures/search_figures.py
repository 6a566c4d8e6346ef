"""The figures of a search, in the order of the page."""

from pathlib import Path

from qdsweep.analysis.figures.figure import Drawn, Omitted
from qdsweep.analysis.figures.search_coordinates import search_coordinates
from qdsweep.analysis.figures.search_curves import search_curves
from qdsweep.analysis.figures.search_progress import search_progress
from qdsweep.analysis.figures.search_ranks import search_ranks
from qdsweep.analysis.figures.search_tree import search_tree
from qdsweep.analysis.search import Searched, next_levels


def search_figures(search: Searched | None, runs_dir: Path) -> list[Drawn | Omitted]:
    """Draws what a search has to show; nothing where there was none."""
    if search is None or not search.placed:
        return []
    first: list[Drawn | Omitted]
    if search.is_pbt:
        first = [search_tree(search), search_curves(search, runs_dir)]
    else:
        ranks = [search_ranks(search)] if next_levels(search.levels) else []
        first = [search_curves(search, runs_dir), *ranks]
    return [*first, search_progress(search), search_coordinates(search)]
