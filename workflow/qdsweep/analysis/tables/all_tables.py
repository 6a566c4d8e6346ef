"""All tables of a sweep's runs, as the stage aggregate writes them."""

from pathlib import Path

from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.analysis.tables.published import write_published
from qdsweep.analysis.tables.timing_tables import write_timing
from qdsweep.records.plan import read_plan
from qdsweep.records.run_dir import RunDir
from qdsweep.records.sweep_dir import SweepDir


def write_tables(sweep_dir: Path, runs_dir: Path, *, partial: bool = False) -> None:
    """Collects the runs of a sweep into tables; `partial`: those that are not finished, too.

    Raises:
        BadInput: A file is missing or damaged, or there is no run.
    """
    if partial:
        _take_snapshots(sweep_dir, runs_dir)
    aggregate(sweep_dir, runs_dir, partial=partial)
    write_timing(sweep_dir, runs_dir)
    write_published(sweep_dir)


def _take_snapshots(sweep_dir: Path, runs_dir: Path) -> None:
    """Takes a snapshot of each unfinished run of a sweep and says which have nothing yet."""
    from qdsweep.experiment.results import snapshot

    for run in dict.fromkeys(row.run for row in read_plan(SweepDir(sweep_dir)).rows):
        folder = RunDir(runs_dir / run)
        if folder.summary.exists():
            continue
        taken = snapshot(folder.path)
        print(f"{run}: {'not finished, taken as it is' if taken else 'missing, nothing saved yet'}")
