"""The stages after a sweep's runs, each declared once.

Rules, command line and page read these declarations. A new stage needs an entry, its function, and
a caption in workflow/report/ for each output that Snakemake's own report shows. Nothing heavy is
imported: the Snakefile reads this file in every job.
"""

import math
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qdsweep.errors import BadInput
from qdsweep.files import await_listed, read_json_if_whole, write_text
from qdsweep.host.lock import FileWatch, Lock, describe, read_owner
from qdsweep.host.machine import apply_baseline, has_avx2
from qdsweep.records.paths import SweepDir
from qdsweep.records.sums import damaged_files, is_withdrawn, sums_of, withdraw
from qdsweep.text import formulas

if TYPE_CHECKING:
    from qdsweep.config.experiment import Experiment
    from qdsweep.config.sweep import SweepFile


@dataclass(frozen=True)
class ReportEntry:
    """How Snakemake's own report shows an output.

    Attributes:
        category: Its heading.
        labels: Labels that distinguish it from others under the heading.
        caption: The file in workflow/report/, without .rst.
        pattern: Of the files that are shown, where the output is a folder.
    """

    category: str
    labels: Mapping[str, str]
    caption: str
    pattern: str | None = None

    def flag(self, path: str) -> Any:
        """Returns an output of a rule with the flags by which Snakemake's report shows it."""
        from snakemake.io import directory, report

        labels = {"sweep": "{sweep}", **self.labels}
        about = {"caption": f"../report/{self.caption}.rst", "category": self.category}
        if self.pattern is None:
            return report(path, **about, labels=labels)
        return report(directory(path), **about, labels=labels, patterns=[self.pattern])


@dataclass(frozen=True)
class Stage:
    """A step from files to files.

    Attributes:
        name: Its command, `qdsweep NAME SWEEP`, and its log.
        help: The help of the command.
        message: The message that Snakemake prints.
        function: `module:function` below qdsweep.analysis, called with the folders of the sweep
            and of the runs.
        outputs: Its files in results/sweeps/NAME -> how Snakemake's report shows each, if it does.
        reads: The stages whose outputs it needs.
        rule: The name of its rule, where that differs.
        key: The attribute of the sweep file that asks for it; empty where every sweep has it.
        fits: Whether runs have the data that it shows.
        of_partial: Whether it also uses unfinished runs.
    """

    name: str
    help: str
    message: str
    function: str
    outputs: Mapping[str, ReportEntry | None]
    reads: tuple[str, ...] = ("aggregate",)
    rule: str = ""
    key: str = ""
    fits: "Callable[[Collection[Experiment]], bool]" = field(default=lambda runs: True)
    of_partial: bool = True

    def is_asked_for(self, settings: "SweepFile", runs: "Collection[Experiment]") -> bool:
        """Returns whether a sweep of these settings and runs has it."""
        by_key = not self.key or getattr(settings, self.key) is not None
        return by_key and (self.of_partial or not settings.partial) and self.fits(runs)

    @property
    def outputs_below_results(self) -> list[str]:
        """Its outputs in the folder results/ of any sweep."""
        return [f"sweeps/{{sweep}}/{path}" for path in self.outputs]

    def rule_outputs(self) -> list[Any]:
        """Returns its outputs in the form of a Snakemake rule."""
        paths = [f"results/{path}" for path in self.outputs_below_results]
        return [
            shown.flag(path) if shown else path
            for path, shown in zip(paths, self.outputs.values(), strict=True)
        ]

    def is_done(self, sweep_dir: Path) -> bool:
        """Returns whether its outputs are there."""
        return all((sweep_dir / path).exists() for path in self.outputs)

    def written(self, sweep_dir: Path) -> float:
        """Returns the time of its oldest output, 0 where one is missing [s]."""
        paths = [sweep_dir / path for path in self.outputs]
        return min(path.stat().st_mtime if path.exists() else 0 for path in paths)

    @property
    def first(self) -> str:
        """The remedy where one of its files is missing."""
        return f"Run `qdsweep {self.name}` (or `snakemake`) first."

    @property
    def rebuild(self) -> str:
        """The remedy where one of its files is damaged."""
        return f"`qdsweep {self.name}` with the sweep's name rebuilds it"

    def run(self, sweep_dir: Path, runs_dir: Path, **options: object) -> None:
        """Runs it with the CPU settings of a run: the same bits with and without the warm process.

        Raises:
            BadInput: A file that it reads has changed since it was written, or its own work failed.
        """
        with self._turn(SweepDir(sweep_dir)) as read:
            for stage in read:
                stage.await_files(sweep_dir)
                stage.require_as_written(sweep_dir)
            for path in self.damaged(sweep_dir):
                path.unlink(missing_ok=True)  # cached pictures too
            withdraw(self._sums(sweep_dir))
            apply_baseline("avx2" if has_avx2() else "native")
            with formulas(_labels_of(sweep_dir)):
                self.load()(sweep_dir, runs_dir, **options)
            write_text(self._sums(sweep_dir), sums_of(sweep_dir, self._files(sweep_dir)))

    @contextmanager
    def _turn(self, sweep: SweepDir) -> Iterator[list["Stage"]]:
        """Waits until no other process writes what this stage reads, or uses what it writes.

        A stage takes its own lock first, and then looks at the locks of others. If a reader and a
        writer meet, the reader gives its lock back.

        Yields:
            The stages that it reads.
        """
        read = [stage for stage in STAGES if stage.name in self.reads]
        readers = [stage for stage in STAGES if self.name in stage.reads]
        if not sweep.path.exists():  # a wrong name, which its function refuses
            yield read
            return
        watch = FileWatch()
        while True:
            _await_end([self, *read], sweep, watch)
            with Lock(sweep.lock(self.name), math.inf, watch, sys.stdout):
                if any(watch.is_held(sweep.lock(stage.name)) for stage in read):
                    continue
                _await_end(readers, sweep, watch)
                yield read
                return

    def title(self, sweep: str) -> str:
        """Returns what a sweep's outputs of it are: `tables of the sweep demo`."""
        return self.message.partition(":")[0].replace("{wildcards.sweep}", sweep)

    def await_files(self, sweep_dir: Path) -> None:
        """Waits for the outputs that it has just written on another node."""
        paths = [self._sums(sweep_dir), *(sweep_dir / output for output in self.outputs)]
        folders = {path.parent for path in paths} | {path for path in paths if path.is_dir()}
        for folder in folders:
            await_listed(folder)

    def require_as_written(self, sweep_dir: Path) -> None:
        """Refuses an output that has changed since it was written.

        Raises:
            BadInput: There is one.
        """
        for path in self.damaged(sweep_dir):
            raise BadInput(f"{path} has changed since it was written: {self.rebuild}")

    def damaged(self, sweep_dir: Path) -> list[Path]:
        """Returns its outputs that have changed since it wrote them."""
        return damaged_files(self._sums(sweep_dir), sweep_dir)

    def _sums(self, sweep_dir: Path) -> Path:
        return SweepDir(sweep_dir).sums(self.name)

    def _files(self, sweep_dir: Path) -> Iterator[Path]:
        """Yields its outputs; for a folder also the cached files."""
        for path in (sweep_dir / output for output in self.outputs):
            if path.is_dir():
                yield from sorted(path.rglob("*"))
                yield from sorted((SweepDir(sweep_dir).kept / path.name).glob("*"))
            else:
                yield path

    def load(self) -> Callable[..., None]:
        """Imports its function, which takes seconds."""
        module, _, name = self.function.partition(":")
        function: Callable[..., None] = getattr(import_module(f"qdsweep.analysis.{module}"), name)
        return function


def _table(path: str, label: str = "", caption: str = "") -> dict[str, ReportEntry | None]:
    """Returns a table's four files; with a label its Markdown is in Snakemake's report."""
    shown = ReportEntry("Tables", {"table": label}, caption or Path(path).name) if label else None
    return {f"{path}{end}": None for end in (".csv", ".tex", ".json")} | {f"{path}.md": shown}


def _figure(name: str, label: str) -> dict[str, ReportEntry | None]:
    """Returns a figure's four files; its SVG is in Snakemake's report."""
    shown = ReportEntry("Figures", {"figure": label}, name)
    data = {f"plots/{name}{end}": None for end in (".pdf", ".png", ".csv")}
    return {f"plots/{name}.svg": shown, **data}


def _folder(
    path: str, pattern: str, category: str, label: str, caption: str
) -> dict[str, ReportEntry]:
    return {path: ReportEntry(category, {label: f"{{{label}}}"}, caption, f"{{{label}}}{pattern}")}


STAGES = (
    Stage(
        "search",
        "Collect the results and decisions of a search.",
        "results of the search {wildcards.sweep}",
        "tables.search:write_search",
        {
            **dict.fromkeys(("search.json", "search.csv")),
            **_table("tables/search_settings", "settings of the search"),
            **_table("tables/search_levels", "levels of the search"),
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
        "tables.aggregate:write_tables",
        {
            **dict.fromkeys(("runs.tsv", "summary.csv", "curves.csv")),
            **_table("table", "results by group"),
            **_table("tables/timing"),
            **_table("tables/comparisons", "differences between groups"),
        },
        reads=("search",),
    ),
    Stage(
        "importance",
        "Tabulate the importance of the swept parameters of a search.",
        "importance of the swept parameters of {wildcards.sweep}",
        "tables.importance:write_importance",
        _table("tables/importance", "importance of swept parameters"),
        rule="importance_table",
        key="search",
    ),
    Stage(
        "corrected",
        "Tabulate the corrected archives of a sweep.",
        "corrected archives of the sweep {wildcards.sweep}",
        "tables.corrected:write_corrected",
        _table("tables/corrected", "corrected archives"),
        rule="corrected_table",
        key="reevaluate",
        of_partial=False,
    ),
    Stage(
        "winners",
        "Choose the groups to be confirmed.",
        "winners of the sweep {wildcards.sweep}, to be confirmed",
        "tables.confirmed:choose_winners",
        {"confirm.json": None},
        rule="choose_winners",
        key="confirm",
        of_partial=False,
    ),
    Stage(
        "confirmed",
        "Tabulate the winners on held-out seeds.",
        "winners of the sweep {wildcards.sweep} on held-out seeds",
        "tables.confirmed:write_confirmed",
        _table("tables/confirmed", "winners on held-out seeds"),
        rule="confirmed_table",
        key="confirm",
        of_partial=False,
    ),
    Stage(
        "plot",
        "Draw the figures of a sweep.",
        "figures of the sweep {wildcards.sweep}",
        "figures.plots:plot",
        {
            **_figure("overview", "overview"),
            **_figure("learning_curves", "learning curves"),
            **_figure("heatmaps", "archives"),
            **_figure("archive_profiles", "archive profiles"),
            # Figures that depend on the swept parameters and on the settings.
            **_folder("plots/more", ".svg", "Figures", "figure", "more"),
            **_folder("plots/archives", ".png", "Archives", "run", "archive"),
            "plots/figures.json": None,
        },
        reads=("aggregate", "importance", "corrected"),
    ),
    Stage(
        "evolution",
        "Animate the archives of a sweep over time.",
        "animations of the archives of {wildcards.sweep} over time",
        "figures.animations:evolution",
        _folder("plots/evolution", ".gif", "Evolution", "run", "evolution"),
        # Only archives with fixed cells have one.
        fits=lambda runs: any(run.has_history for run in runs),
    ),
    Stage(
        "rollouts",
        "Render elites of a sweep, as declared by its key rollouts.",
        "rendered episodes of elites of {wildcards.sweep}",
        "figures.animations:rollouts",
        _folder("plots/rollouts", ".gif", "Rollouts", "elite", "rollouts"),
        key="rollouts",
    ),
    Stage(
        "report",
        "Write the HTML report of a sweep.",
        "report of the sweep {wildcards.sweep}: {output}",
        "page.report:report",
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


def _labels_of(sweep_dir: Path) -> list[str]:
    """Returns the labels and names in `figures` of a sweep file, which may have formulas."""
    figures = read_json_if_whole(SweepDir(sweep_dir).plan).get("figures") or {}
    return [*figures.get("labels", {}).values(), *figures.get("names", {}).values()]


def _await_end(stages: Iterable[Stage], sweep: SweepDir, watch: FileWatch) -> None:
    """Waits until no process runs one of these stages, and prints which process does.

    It prints to the standard output, which is the terminal: rules redirect only the error output.
    """
    for stage in stages:
        printed = ""
        while watch.is_held(lock := sweep.lock(stage.name)):
            owner = describe(read_owner(lock))
            if owner != printed:
                text = f"waiting for {owner}, which makes the {stage.title(sweep.name)}"
                print(f"qdsweep: {text}", flush=True)
                printed = owner
            time.sleep(0.2)


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
