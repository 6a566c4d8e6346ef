"""Unfinished sweeps: tables and figures of the runs that are there."""

from pathlib import Path

from qdsweep.records.plan import read_plan
from qdsweep.records.run_dir import RunDir
from qdsweep.records.sweep_dir import SweepDir


def take_snapshots(sweep_dir: Path, runs_dir: Path) -> None:
    """Takes a snapshot of each unfinished run of a sweep and says which have nothing yet."""
    from qdsweep.experiment.results import snapshot

    for run in dict.fromkeys(row.run for row in read_plan(SweepDir(sweep_dir)).rows):
        folder = RunDir(runs_dir / run)
        if folder.summary.exists():
            continue
        taken = snapshot(folder.path)
        print(f"{run}: {'not finished, taken as it is' if taken else 'missing, nothing saved yet'}")
