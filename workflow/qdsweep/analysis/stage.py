"""A stage after a sweep's runs: what it reads and writes, and how reports show it."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qdsweep.errors import BadInput
from qdsweep.files import await_listed
from qdsweep.records.paths import SweepDir
from qdsweep.records.sums import damaged_files

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
        function: `module:function` below qdsweep, called with the folders of the sweep
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

    def title(self, sweep: str) -> str:
        """Returns what a sweep's outputs of it are: `tables of the sweep demo`."""
        return self.message.partition(":")[0].replace("{wildcards.sweep}", sweep)

    def await_files(self, sweep_dir: Path) -> None:
        """Waits for the outputs that it has just written on another node."""
        paths = [self.sums(sweep_dir), *(sweep_dir / output for output in self.outputs)]
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
        return damaged_files(self.sums(sweep_dir), sweep_dir)

    def sums(self, sweep_dir: Path) -> Path:
        """Returns the file with the checksums of its outputs."""
        return SweepDir(sweep_dir).sums(self.name)

    def files(self, sweep_dir: Path) -> Iterator[Path]:
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
        function: Callable[..., None] = getattr(import_module(f"qdsweep.{module}"), name)
        return function


def table_outputs(path: str, label: str = "", caption: str = "") -> dict[str, ReportEntry | None]:
    """Returns a table's four files; with a label its Markdown is in Snakemake's report."""
    shown = ReportEntry("Tables", {"table": label}, caption or Path(path).name) if label else None
    return {f"{path}{end}": None for end in (".csv", ".tex", ".json")} | {f"{path}.md": shown}


def figure_outputs(name: str, label: str) -> dict[str, ReportEntry | None]:
    """Returns a figure's four files; its SVG is in Snakemake's report."""
    shown = ReportEntry("Figures", {"figure": label}, name)
    data = {f"plots/{name}{end}": None for end in (".pdf", ".png", ".csv")}
    return {f"plots/{name}.svg": shown, **data}


def folder_outputs(
    path: str, pattern: str, category: str, label: str, caption: str
) -> dict[str, ReportEntry]:
    """Returns a folder, whose files of this pattern are in Snakemake's report."""
    return {path: ReportEntry(category, {label: f"{{{label}}}"}, caption, f"{{{label}}}{pattern}")}
