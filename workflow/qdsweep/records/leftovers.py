"""What `qdsweep clean` removes: files that nothing needs, and runs that no sweep refers to."""

import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from qdsweep.config.imported import is_imported
from qdsweep.host.lock import may_be_alive
from qdsweep.records.confirm import read_confirm
from qdsweep.records.plan import read_plan
from qdsweep.records.search import chosen_runs
from qdsweep.records.sweep_dir import Results, SweepDir

# What a kill can leave behind: the second half of an atomic write.
_TORN = ".*.tmp"


def leftovers(results: Results) -> Iterator[Path]:
    """Yields temporary files of writes that were cut off, in runs that nobody computes now."""
    for run in results.known_runs():
        if not may_be_alive(run.state.lock):
            yield from run.path.glob(_TORN)
            yield from run.state.torn()
    for sweep in map(SweepDir, results.sweeps.glob("*")):  # also one whose plan was cut off
        yield from chain(
            sweep.path.glob(_TORN),
            sweep.tables.glob(_TORN),
            sweep.plots.glob(f"**/{_TORN}"),
            sweep.search.glob(f"*/{_TORN}"),
        )
    for folder in (results.centroids, results.sources):
        yield from folder.glob(_TORN)


def orphans(results: Results) -> Iterator[Path]:
    """Yields runs that no sweep refers to, and that nobody computes now; none that was imported.

    Raises:
        BadInput: A plan, confirm.json or a decision of a search is damaged, so that nobody knows
            what it refers to.
    """
    wanted = set()
    for sweep in results.known_sweeps():
        plan = read_plan(sweep)
        wanted |= {row.run for row in plan.rows} | chosen_runs(sweep, plan.levels)
        wanted |= {run for setting in plan.candidates for run in setting["runs"].values()}
        wanted |= {row["id"] for row in read_confirm(sweep)}
    for run in results.known_runs():
        if run.name not in wanted and not (is_imported(run.name) or may_be_alive(run.state.lock)):
            yield run.path


def size(path: Path) -> int:
    """Returns bytes on disk; a file with two names is counted once."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    stats = {(s.st_dev, s.st_ino): s.st_size for s in (file.stat() for file in files)}
    return sum(stats.values())


def remove(path: Path) -> None:
    """Removes a file or a folder."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
