"""Pictures that take long to make, kept as long as they are made of the same.

Snakemake empties the folders of a stage before its job: what is still right lies in `.kept` of the
sweep, as hard links, and comes back from there.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import qdsweep
from qdsweep.files import link, read_json_if_whole, write_json
from qdsweep.records.sweep_dir import SweepDir

# The number is to be raised when pictures of the same things look different.
_VERSION = f"1 {qdsweep.__version__}"


def stamp(path: Path) -> str:
    """Returns what tells whether a file has changed: its time of modification [ns] and size."""
    stat = path.stat()
    return f"{stat.st_mtime_ns} {stat.st_size}"


def keep(
    folder: Path, sweep: SweepDir, made_of: Mapping[str, str], make: Callable[[str], None]
) -> None:
    """Fills a folder with files, and makes only those that are new or made of something else.

    Args:
        folder: Where the files are to be.
        sweep: The sweep, which keeps them.
        made_of: Name of a file -> all that it depends on. What was kept of other files is removed.
        make: Writes the file of a name into the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    store = sweep.kept / folder.name
    store.mkdir(parents=True, exist_ok=True)
    known = set()
    for name, text in made_of.items():
        about = f"{_VERSION} {name} {text}"
        path, kept = folder / name, store / hashlib.sha256(about.encode()).hexdigest()[:32]
        known.add(kept)
        if not kept.exists():
            make(name)
            link(path, kept)
        elif not (path.exists() and path.samefile(kept)):
            link(kept, path)
    for old in set(store.iterdir()) - known:
        old.unlink(missing_ok=True)


def keep_all(
    folder: Path, sweep: SweepDir, made_of: str, make: Callable[[], Iterable[str]]
) -> None:
    """Fills a folder as `keep` does, with files whose names are known only after `make`.

    What is kept counts only if all of it is there: a kill, or a second start of the same sweep at
    the same time, may have torn it.

    Args:
        folder: Where the files are to be.
        sweep: The sweep, which keeps them.
        made_of: All that they depend on.
        make: Writes the files into the folder and returns their names.
    """
    store = sweep.kept / folder.name
    note, about = store / "made_of.json", f"{_VERSION} {made_of}"
    folder.mkdir(parents=True, exist_ok=True)
    known = read_json_if_whole(note)
    kept = [store / str(name) for name in known.get("files", [])]
    if known.get("made_of") == about and all(path.exists() for path in kept):
        for path in kept:
            link(path, folder / path.name)
        return
    shutil.rmtree(store, ignore_errors=True)
    names = sorted(make())
    store.mkdir(parents=True, exist_ok=True)
    for name in names:
        link(folder / name, store / name)
    write_json(note, {"made_of": about, "files": names})
