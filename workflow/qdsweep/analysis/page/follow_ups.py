"""What was computed of a sweep after its runs, for the methods paragraph."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qdsweep.analysis.page.references import cite
from qdsweep.analysis.page.words import seeds_text
from qdsweep.analysis.text import number
from qdsweep.config.sweep import Reevaluate
from qdsweep.elites.reevaluation import core_seconds_of
from qdsweep.files import AGAIN, read_json
from qdsweep.records.confirm import read_confirm
from qdsweep.records.plan import read_plan
from qdsweep.records.run_dir import RunDir
from qdsweep.records.summary import read_summary
from qdsweep.records.sweep_dir import SweepDir


@dataclass(frozen=True)
class Confirmation:
    """The winners of a sweep on unseen seeds.

    Attributes:
        rows: Those of confirm.json.
        summaries: summary.json of their runs.
    """

    rows: list[dict[str, Any]]
    summaries: list[dict[str, Any]]

    def sentence(self, tasks: int) -> str:
        """Returns a sentence on what was done, in a sweep with this number of tasks."""
        groups = len({row["group"] for row in self.rows})
        which = "The best group was" if groups == 1 else f"The best {groups} groups were"
        if tasks > 1:
            which = f"The best groups of each task, {groups} in all, were"
        seeds = seeds_text(row["values"]["seed"] for row in self.rows)
        return (
            f"{which} run again with the unseen {seeds}, which takes the bias of the selection"
            f" out{cite(['cawley2010overfitting'])}."
        )


@dataclass(frozen=True)
class Correction:
    """The corrected archives of a sweep.

    Attributes:
        settings: How often, and with which seed, elites were evaluated again.
        elites: How many there were in all archives.
        core_seconds: What it took.
    """

    settings: Reevaluate
    elites: int
    core_seconds: float

    @property
    def sentence(self) -> str:
        """What was done."""
        times = self.settings.times
        what = f"means of {times} new evaluations" if times > 1 else "values of one new evaluation"
        return (
            f"Corrected archives{cite(['flageat2024uncertain'])} hold the elites with the {what} of"
            f" each ({number(times * self.elites)} evaluations in all, of fresh seeds drawn from"
            f" the seed {self.settings.seed}); where several fall into one cell, the best stays."
        )


def read_confirmation(sweep_dir: Path, runs_dir: Path) -> Confirmation:
    """Reads what confirmed the winners of a sweep."""
    rows = read_confirm(SweepDir(sweep_dir))
    return Confirmation(rows, read_summaries(runs_dir, dict.fromkeys(row["id"] for row in rows)))


def read_correction(sweep_dir: Path, runs_dir: Path, ids: Iterable[str]) -> Correction | None:
    """Reads how the archives of some runs were corrected; None if the sweep does not ask for it."""
    settings = read_plan(SweepDir(sweep_dir)).reevaluate
    if settings is None:
        return None
    folders = [RunDir(runs_dir / run) for run in ids]
    corrected = [folder for folder in folders if folder.corrected(settings.stem).exists()]
    elites = [read_json(run.corrected(settings.stem), AGAIN)["elites"] for run in corrected]
    spent = [core_seconds_of(run, settings) for run in corrected]
    return Correction(settings, sum(elites), sum(spent))


def read_summaries(runs_dir: Path, ids: Iterable[str]) -> list[dict[str, Any]]:
    """Reads summary.json of some runs."""
    return [read_summary(RunDir(runs_dir / run).results) for run in ids]
