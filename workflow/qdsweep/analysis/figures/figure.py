"""A figure with its caption and data, and the files that it is written to.

Pictures that take long to make are kept in `.kept` of the sweep, as hard links, because Snakemake
removes the files of a job that fails.
"""

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from qdsweep import ornaments
from qdsweep.analysis.figures.style import save, wrap
from qdsweep.analysis.stages import maker_of
from qdsweep.errors import BadInput
from qdsweep.files import damaged, link, read_json_if_whole, write_csv, write_json, write_text
from qdsweep.ornaments import ornament
from qdsweep.records.paths import SweepDir
from qdsweep.versions import __version__

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


_ABOUT = ("name", "section", "title", "caption", "why")

_PICTURES = (".pdf", ".png", ".svg")
# The number is to be raised when pictures of the same data look different.
_VERSION = f"2 {__version__}"


@dataclass(frozen=True)
class Drawn:
    """A figure with all that a reader needs.

    Attributes:
        name: The stem of its files.
        section: Its section of the report.
        title: What it shows, a few words.
        caption: Whole sentences.
        figure: The picture.
        data: What it shows, a row for each point.
    """

    name: str
    section: str
    title: str
    caption: str
    figure: "Figure"
    data: "pd.DataFrame"


@dataclass(frozen=True)
class Omitted:
    """A figure that is not drawn, mostly as its data show nothing; `why` ends a sentence."""

    name: str
    section: str
    title: str
    why: str


def save_figures(
    folder: Path,
    drawn: Iterable[Drawn | Omitted],
    index: str = "figures",
    *,
    declared: bool = False,
) -> set[str]:
    """Writes NAME.pdf, .png, .svg and .csv of each figure, and an index for the report.

    If a figure is not drawn, the reason is printed.

    Args:
        folder: The folder.
        drawn: The figures.
        index: The name of the index.
        declared: Whether a stage declares their files, which are then written in any case: for a
            figure that is not drawn, with the reason.

    Returns:
        The names of all files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names, entries = {f"{index}.json"}, []
    for figure in drawn:
        saved = figure if isinstance(figure, Omitted) else _save(folder, figure)
        if isinstance(saved, Omitted):
            print(f"{saved.name}: not drawn: {saved.why}", file=sys.stderr)
            figure, saved = saved, _write_reason(folder, saved) if declared else []
        entries.append(_about(figure))
        names |= {path.name for path in saved}
    _write_index(folder / f"{index}.json", entries)
    return names


def remove_others(folder: Path, names: Collection[str]) -> None:
    """Removes the files that an earlier start wrote into a folder, and this one did not."""
    for path in filter(Path.is_file, folder.iterdir()):
        if path.name not in names and not path.name.startswith("."):
            path.unlink()


def save_one(folder: Path, drawn: Drawn) -> list[Path]:
    """Writes the files of a figure and its entry in the index; returns the files.

    Raises:
        BadInput: It cannot be drawn.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files, path = _save(folder, drawn), folder / "figures.json"
    if isinstance(files, Omitted):
        raise BadInput(f"{folder / drawn.name}: not drawn: {files.why}")
    entries = {entry["name"]: entry for entry in read_index(path)} if path.exists() else {}
    _write_index(path, [*(entries | {drawn.name: _about(drawn)}).values()])
    return files


def read_index(path: Path) -> list[dict[str, str]]:
    """Reads what `save_figures` has written about its figures; `why` is empty of a drawn one.

    Raises:
        BadInput: It is damaged.
    """
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        # Earlier releases drew all.
        return [{key: ({"why": ""} | entry)[key] for key in _ABOUT} for entry in entries]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise damaged(path, error, maker_of(path).rebuild) from error


@ornament(
    "the figure {1.name}",
    lambda why, folder, drawn: Omitted(drawn.name, drawn.section, drawn.title, why),
)
def _save(folder: Path, drawn: Drawn) -> list[Path] | Omitted:
    save(drawn.figure, folder / drawn.name, _PICTURES)
    write_csv(drawn.data, folder / f"{drawn.name}.csv")
    return [folder / f"{drawn.name}{ending}" for ending in (*_PICTURES, ".csv")]


def _write_reason(folder: Path, omitted: Omitted) -> list[Path]:
    """Writes the files of a figure that is not drawn: they have only the reason."""
    import pandas as pd
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 2))
    text = wrap(f"{omitted.title}: not drawn: {omitted.why}".replace("$", r"\$"), 5.5)
    figure.text(0.5, 0.5, text, ha="center", va="center")
    save(figure, folder / omitted.name, _PICTURES)
    write_csv(pd.DataFrame({"not_drawn": [omitted.why]}), folder / f"{omitted.name}.csv")
    return [folder / f"{omitted.name}{ending}" for ending in (*_PICTURES, ".csv")]


def _about(drawn: Drawn | Omitted) -> dict[str, str]:
    return {key: getattr(drawn, key, "") for key in _ABOUT}


def _write_index(path: Path, entries: list[dict[str, str]]) -> None:
    write_text(path, json.dumps(entries, indent=1, ensure_ascii=False) + "\n")


def stamp(path: Path) -> str:
    """Returns the time of modification [ns] and the size of a file, which show a change."""
    stat = path.stat()
    return f"{stat.st_mtime_ns} {stat.st_size}"


def keep(
    folder: Path, sweep: SweepDir, made_of: Mapping[str, str], make: Callable[[str], None]
) -> None:
    """Fills a folder with files, and makes only those that are new or made of something else.

    A file that cannot be made is left out, with one warning for all of them.

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
    failed: dict[str, Exception] = {}
    for name, text in made_of.items():
        about = f"{_VERSION} {name} {text}"
        path, stored = folder / name, store / hashlib.sha256(about.encode()).hexdigest()[:32]
        known.add(stored)
        if not stored.exists():
            if error := ornaments.failure_of(make, name):
                failed[name] = error
                path.unlink(missing_ok=True)
            else:
                link(path, stored)
        elif not (path.exists() and path.samefile(stored)):
            link(stored, path)
    for old in set(store.iterdir()) - known:
        old.unlink(missing_ok=True)
    for name, error in [*failed.items()][:1]:
        others = f" and {len(failed) - 1:,} more" if len(failed) > 1 else ""
        ornaments.leave_out(f"{folder / name}{others}", error)


def keep_all(
    folder: Path, sweep: SweepDir, made_of: str, make: Callable[[], tuple[Collection[str], bool]]
) -> None:
    """Fills a folder as `keep` does, with files whose names are known only after `make`.

    The kept files count only if all of them are there: a kill may have left some of them.

    Args:
        folder: Where the files are to be.
        sweep: The sweep, which keeps them.
        made_of: All that they depend on.
        make: Writes the files into the folder and returns their names, and whether they are all.
    """
    store = sweep.kept / folder.name
    note, about = store / "made_of.json", f"{_VERSION} {made_of}"
    folder.mkdir(parents=True, exist_ok=True)
    known = read_json_if_whole(note)
    stored = [store / str(name) for name in known.get("files", [])]
    if known.get("made_of") == about and all(path.exists() for path in stored):
        for path in stored:
            link(path, folder / path.name)
        remove_others(folder, known["files"])
        return
    shutil.rmtree(store, ignore_errors=True)
    made, is_all = make()
    names = sorted(made)
    store.mkdir(parents=True, exist_ok=True)
    for name in names:
        link(folder / name, store / name)
    if is_all:
        write_json(note, {"made_of": about, "files": names})
    remove_others(folder, names)
