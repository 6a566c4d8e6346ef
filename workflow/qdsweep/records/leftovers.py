"""What `qdsweep clean` removes: files that nothing needs, and runs that no sweep refers to."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from qdsweep.errors import BadInput
from qdsweep.files import read_json
from qdsweep.host.lock import is_alive
from qdsweep.planning.confirmation import confirming_rows

# What a kill can leave behind: the second half of an atomic write.
_LEFTOVERS = (
    "runs/*/.*.tmp",
    "runs/*/state/.*.tmp",
    "sweeps/*/.*.tmp",
    "sweeps/*/tables/.*.tmp",
    "sweeps/*/plots/**/.*.tmp",
    "centroids/.*.tmp",
)


def leftovers(results: Path) -> Iterator[Path]:
    """Temporary files of writes that were cut off, in runs that nobody computes now."""
    for pattern in _LEFTOVERS:
        for path in results.glob(pattern):
            run = path.parent if path.parent.name == "state" else path.parent / "state"
            if not is_alive(run / "lock"):
                yield path


def orphans(results: Path) -> Iterator[Path]:
    """Runs that no sweep in `results/sweeps` refers to, and that nobody computes now.

    Raises:
        BadInput: A plan or confirm.json is damaged, so that nobody knows what it refers to.
    """
    wanted = set()
    for plan in (results / "sweeps").glob("*/plan.json"):
        try:
            wanted |= {row["id"] for row in read_json(plan)["rows"]}
            wanted |= {row["id"] for row in confirming_rows(plan.parent)}
        except (KeyError, TypeError):
            raise BadInput(
                f"{plan} is damaged, so the runs of its sweep are not known: start snakemake "
                "with that sweep, which writes it anew, or remove the file"
            ) from None
    for run in sorted((results / "runs").glob("*")):
        if run.name not in wanted and not is_alive(run / "state" / "lock"):
            yield run


def size(path: Path) -> int:
    """Bytes on disk; a file with two names is counted once."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    stats = {(s.st_dev, s.st_ino): s.st_size for s in (file.stat() for file in files)}
    return sum(stats.values())


def remove(path: Path) -> None:
    """Removes a file or a folder."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
