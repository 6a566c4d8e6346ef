"""The stages after a sweep's runs, each declared once, here or in a feature.

Rules, command line and page read these declarations. A new stage needs an entry, its function, and
a caption in workflow/report/ for each output that Snakemake's own report shows. Nothing heavy is
imported: the Snakefile reads this file in every job.
"""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from qdsweep.analysis.stage import ReportEntry, Stage, figure_outputs, folder_outputs, table_outputs
from qdsweep.features import modules
from qdsweep.records.paths import SweepDir
from qdsweep.records.sums import is_withdrawn

if TYPE_CHECKING:
    from qdsweep.config.experiment import Experiment
    from qdsweep.config.sweep import SweepFile

STAGES = (
    Stage(
        "search",
        "Collect the results and decisions of a search.",
        "results of the search {wildcards.sweep}",
        "analysis.tables.search_table:write_search",
        {
            **dict.fromkeys(("search.json", "search.csv")),
            **table_outputs("tables/search_settings", "settings of the search"),
            **table_outputs("tables/search_levels", "levels of the search"),
        },
        reads=(),
        rule="search_table",
        key="staged_search",
        of_partial=False,
    ),
    Stage(
        "aggregate",
        "Collect the runs of a sweep into tables.",
        "tables of the sweep {wildcards.sweep}",
        "analysis.tables.aggregate:write_tables",
        {
            **dict.fromkeys(("runs.tsv", "summary.csv", "curves.csv")),
            **table_outputs("table", "results by group"),
            **table_outputs("tables/timing"),
            **table_outputs("tables/comparisons", "differences between groups"),
        },
        reads=("search",),
    ),
    Stage(
        "importance",
        "Tabulate the importance of the swept parameters of a search.",
        "importance of the swept parameters of {wildcards.sweep}",
        "analysis.tables.importance:write_importance",
        table_outputs("tables/importance", "importance of swept parameters"),
        rule="importance_table",
        key="search",
    ),
    Stage(
        "corrected",
        "Tabulate the corrected archives of a sweep.",
        "corrected archives of the sweep {wildcards.sweep}",
        "analysis.tables.corrected_scores:write_corrected",
        table_outputs("tables/corrected", "corrected archives"),
        rule="corrected_table",
        key="reevaluate",
        of_partial=False,
    ),
    Stage(
        "winners",
        "Choose the groups to be confirmed.",
        "winners of the sweep {wildcards.sweep}, to be confirmed",
        "analysis.tables.confirmed:choose_winners",
        {"confirm.json": None},
        rule="choose_winners",
        key="confirm",
        of_partial=False,
    ),
    Stage(
        "confirmed",
        "Tabulate the winners on held-out seeds.",
        "winners of the sweep {wildcards.sweep} on held-out seeds",
        "analysis.tables.confirmed:write_confirmed",
        table_outputs("tables/confirmed", "winners on held-out seeds"),
        rule="confirmed_table",
        key="confirm",
        of_partial=False,
    ),
    Stage(
        "plot",
        "Draw the figures of a sweep.",
        "figures of the sweep {wildcards.sweep}",
        "analysis.figures.plots:plot",
        {
            **figure_outputs("overview", "overview"),
            **figure_outputs("learning_curves", "learning curves"),
            **figure_outputs("heatmaps", "archives"),
            **figure_outputs("archive_profiles", "archive profiles"),
            # Figures that depend on the swept parameters and on the settings.
            **folder_outputs("plots/more", ".svg", "Figures", "figure", "more"),
            **folder_outputs("plots/archives", ".png", "Archives", "run", "archive"),
            "plots/figures.json": None,
        },
        reads=("aggregate", "importance", "corrected"),
    ),
    *(stage for feature in modules("stages") for stage in feature.STAGES),
    Stage(
        "report",
        "Write the HTML report of a sweep.",
        "report of the sweep {wildcards.sweep}: {output}",
        "analysis.page.report:report",
        {"report.html": ReportEntry("Page", {"page": "everything on one page"}, "page")},
        reads=("aggregate", "plot", "corrected", "confirmed", "evolution", "rollouts"),
        rule="report_page",
    ),
)


def stages_of(settings: "SweepFile", runs: "Collection[Experiment]") -> dict[str, Stage]:
    """Returns the stages that a sweep asks for, in the order of the data."""
    return {stage.name: stage for stage in STAGES if stage.is_asked_for(settings, runs)}


def files_of(stages: Mapping[str, Stage], names: Iterable[str]) -> list[str]:
    """Returns those files of some stages that a sweep has, in the form of a Snakemake rule."""
    chosen = [stages[name] for name in names if name in stages]
    return [f"results/{path}" for stage in chosen for path in stage.outputs_below_results]


def damaged_stages(stages: Mapping[str, Stage], sweep_dir: Path) -> dict[str, list[Path]]:
    """Returns the stages to rebuild: unfinished ones, and those with a file that has changed.

    Returns:
        The files that have changed since they were written; none of an unfinished stage.
    """
    files = {name: stage.damaged(sweep_dir) for name, stage in stages.items()}
    return {
        name: paths
        for name, paths in files.items()
        if paths or is_withdrawn(SweepDir(sweep_dir).sums(name))
    }


def forget(settings: "SweepFile", sweep_dir: Path) -> None:
    """Removes what an earlier start left for a key that the sweep file no longer has.

    It removes only files: animations are expensive, and no table or number depends on them.
    """
    for stage in STAGES:
        if stage.key and getattr(settings, stage.key) is None:
            for path in filter(Path.is_file, (sweep_dir / output for output in stage.outputs)):
                path.unlink(missing_ok=True)


def maker_of(path: Path) -> Stage:
    """Returns the stage that writes a file of a sweep's folder; by default aggregate."""
    makers = [stage for stage in STAGES for output in stage.outputs if _is_at(path, output)]
    return makers[0] if makers else next(stage for stage in STAGES if stage.name == "aggregate")


def _is_at(path: Path, output: str) -> bool:
    return f"/{output}/" in f"{path.as_posix()}/"
