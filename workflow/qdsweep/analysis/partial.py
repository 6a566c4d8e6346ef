"""Unfinished sweeps: tables and figures of the runs that are there."""

from pathlib import Path

from qdsweep.analysis.plan import read_plan


def results_of(run_dir: Path) -> Path:
    """Returns where a run's results are: its folder, or the last snapshot of an unfinished run."""
    partial = run_dir / "state" / "partial"
    if not (run_dir / "summary.json").exists() and (partial / "summary.json").exists():
        return partial
    return run_dir


def take_snapshots(sweep_dir: Path, runs_dir: Path) -> None:
    """Takes a snapshot of each unfinished run of a sweep and says which have nothing yet."""
    from qdsweep.experiment.results import snapshot

    for run in dict.fromkeys(row.run for row in read_plan(sweep_dir).rows):
        if (runs_dir / run / "summary.json").exists():
            continue
        taken = snapshot(runs_dir / run)
        print(f"{run}: {'not finished, taken as it is' if taken else 'missing, nothing saved yet'}")
