"""Files that nothing needs, and runs that no sweep refers to."""

import shutil
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from qdsweep.errors import BadInput
from qdsweep.files import abandoned
from qdsweep.host.lock import held
from qdsweep.records.aside import abandoned_in
from qdsweep.records.paths import Results, SweepDir, is_imported
from qdsweep.records.plan import read_confirm, read_plan
from qdsweep.records.search_files import chosen_runs
from qdsweep.text import nearest


def named_runs(results: Results, names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Returns the runs of these names, or of sweeps of these names.

    A run that another sweep has, too, is left out.

    Returns:
        The runs, and those that are left out.

    Raises:
        BadInput: There is no such run or sweep, or a process computes one of the runs.
    """
    sweeps = {sweep.name: runs_named(sweep) for sweep in results.known_sweeps()}
    known = [run.name for run in results.known_runs()]
    chosen: set[str] = set()
    shared: list[str] = []
    for name in names:
        if name in sweeps:
            others = set().union(*(runs for other, runs in sweeps.items() if other != name))
            shared += sorted(sweeps[name] & others & {*known})
            chosen |= sweeps[name] - others
        elif name in known:
            chosen.add(name)
        else:
            near = nearest(name, [*sweeps, *known])
            raise BadInput(f"--runs {name}: {near}{results.path}/ has no run or sweep of this name")
    runs = [run for run in known if run in chosen]
    for lock in held(results.run(run).state.lock for run in runs):
        run = lock.parent.parent.name
        raise BadInput(f"--runs: {run} is being computed; stop it first")
    return runs, shared


def leftovers(results: Results) -> Iterator[Path]:
    """Yields temporary files and folders that a kill has left a day ago, and films of no run."""
    yield from chain.from_iterable(map(abandoned_in, results.known_runs()))
    # Also one whose plan is truncated.
    for sweep in map(SweepDir, chain(results.sweeps.glob("*"), results.comparisons.glob("*"))):
        yield from sweep.abandoned()
    yield from results.abandoned()
    for films in results.explore.glob("*"):
        yield from abandoned(films) if results.run(films.name).path.exists() else (films,)


def orphans(results: Results) -> Iterator[Path]:
    """Yields runs that no sweep refers to, except imported runs and those being computed.

    Raises:
        BadInput: A plan, confirm.json or a decision of a search is damaged: its runs are unknown.
    """
    wanted = set().union(*map(runs_named, results.known_sweeps()))
    runs = [run for run in results.known_runs() if run.name not in wanted]
    runs = [run for run in runs if not is_imported(run.name)]
    computed = held(run.state.lock for run in runs)
    yield from (run.path for run in runs if run.state.lock not in computed)


def runs_named(sweep: SweepDir) -> set[str]:
    """Returns the runs that a sweep refers to, with those of its search and confirmation."""
    plan = read_plan(sweep)
    runs = {row.run for row in plan.rows} | chosen_runs(sweep, plan.levels)
    runs |= {run for setting in plan.candidates for run in setting["runs"].values()}
    return runs | {row["id"] for row in read_confirm(sweep)}


def size(path: Path) -> int:
    """Returns bytes on disk: a file with two names once, a link without its target."""
    if path.is_symlink():
        return path.lstat().st_size
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    stats = {(s.st_dev, s.st_ino): s.st_size for s in (file.stat() for file in files)}
    return sum(stats.values())


def remove(path: Path) -> None:
    """Removes a file, a folder or a link, without its target."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
