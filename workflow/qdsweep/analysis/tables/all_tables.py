"""All tables of a sweep's runs, as the stage aggregate writes them."""

from pathlib import Path

from qdsweep.analysis.partial import take_snapshots
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.analysis.tables.published import write_published
from qdsweep.analysis.tables.timing_tables import write_timing


def write_tables(sweep_dir: Path, runs_dir: Path, *, partial: bool = False) -> None:
    """Collects the runs of a sweep into tables.

    Args:
        sweep_dir: `results/sweeps/NAME`, with plan.json.
        runs_dir: `results/runs`.
        partial: Take runs that are not finished, too.

    Raises:
        BadInput: A file is missing or damaged, or there is no run.
    """
    if partial:
        take_snapshots(sweep_dir, runs_dir)
    aggregate(sweep_dir, runs_dir, partial=partial)
    write_timing(sweep_dir, runs_dir)
    write_published(sweep_dir)
