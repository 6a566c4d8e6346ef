"""The config of a start as it was composed: the sweep file, and the config files that it names.

In another folder, these files plan the same runs; the user's code is kept elsewhere (see
`records.sources`).
"""

import copy
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from qdsweep.config.files import (
    CONFIG,
    PRESET_FOLDER,
    BlockText,
    find_config,
    find_preset,
    read_yaml,
    shown,
    to_yaml,
)
from qdsweep.config.keys import PRESETS
from qdsweep.config.sweep import SweepFile
from qdsweep.errors import BadInput
from qdsweep.planning.request import Given
from qdsweep.records.study_files import SWEEP_FILE
from qdsweep.sweep.drawn import DrawnSource
from qdsweep.sweep.grammar import files_in, parse
from qdsweep.sweep.runs import External

# Where a file gets its place that is outside the study's folder.
_VALUES = "config/values"
# Files and folders that a package has of its own, next to the config.
_TAKEN = {
    *("tables", "figures", "search", "runs", "containers", "results", SWEEP_FILE, "report.html"),
    *("README.txt", "SHA256SUMS", "requirements.lock", "ro-crate-metadata.json"),
    *("LICENSE", "CITATION.cff", ".zenodo.json"),
}
# Keys of one start, which decide neither runs nor tables.
_OF_A_START = {"partial", "shard", "outdated"}
# The folders of a path that leads out of the study; in quotes it may have blanks.
_START = r"(?:/|~|\.\./)"
_FOLDERS = re.compile(
    rf"(?<='){_START}[^']*/|(?<=\"){_START}[^\"]*/"
    rf"|(?<![\w./-]){_START}(?:\\.|[^\s'\"=,:\\])*/"
)


def composed_study(
    settings: SweepFile, given: Given, imported: Iterable[External] = ()
) -> dict[str, bytes]:
    """Returns the files of a start's config.

    Args:
        settings: The sweep file, with the keys as they were given.
        given: What it was made of.
        imported: Its external runs.

    Returns:
        Path in the study -> content; `sweep.yaml` is the sweep file, with the start in a comment.
    """
    named = NamedFiles()
    data = named.of_sweep(settings, imported)
    if "sweep" in data:
        data["sweep"] = BlockText(data["sweep"]) if "\n" in data["sweep"] else data["sweep"]
    lines = [*_origin(given), *(f"{place}: it was outside the study" for place in named.moved)]
    heading = "".join(f"# {line}\n" for text in lines for line in text.splitlines())
    text = heading + to_yaml(data, allow_unicode=True, default_flow_style=None, width=100)
    files = {place: path.read_bytes() for place, path in sorted(named.files.items())}
    return {SWEEP_FILE: text.encode(), **files}


class NamedFiles:
    """The files that a sweep names, and the place of each in a study.

    Attributes:
        files: Place -> file.
        moved: The places of files that have another one than in this study.
        outside: Names that lead out of the study, and that cannot be changed there.
    """

    def __init__(self) -> None:
        self.files: dict[str, Path] = {}
        self.moved: list[str] = []
        self.outside: list[str] = []

    def of_sweep(self, settings: SweepFile, imported: Iterable[External] = ()) -> dict[str, Any]:
        """Returns the keys of a sweep file that were given, with the places of these files."""
        data = settings.model_dump(mode="json", exclude_unset=True, exclude=_OF_A_START)
        data = copy.deepcopy(data)
        if isinstance(settings.experiment, str):
            data["experiment"] = self._preset("experiments", settings.experiment)
        else:
            self._parts(data["experiment"])
        for kind, name in _swept_presets(settings.sweep):
            self._preset(kind, name, is_fixed=True)
        for word in reversed(files_in(settings.sweep)):
            text, place = data["sweep"], self._place(Path(word.text))
            if place != os.path.normpath(word.text):
                data["sweep"] = text[: word.start] + shlex.quote(place) + text[word.end :]
        auto = settings.cluster == "auto"
        for name in ("local", "slurm") if auto else (settings.cluster,):
            cluster = self._preset("clusters", name)
            data |= {} if auto else {"cluster": cluster}
        if settings.imported:
            data["imported"] = [*self._described(imported)]
        return data

    def _described(self, imported: Iterable[External]) -> Iterator[str]:
        """Yields the places of descriptions of external results; their data go with them."""
        places: dict[Path, str] = {}
        for run in imported:
            description, *files = run.files
            if description not in places:
                places[description] = self._place(description)
                yield places[description]
            folder = Path(places[description]).parent
            for file in files:
                below = os.path.relpath(file, description.parent)
                place = os.path.normpath(folder / below)
                if place.startswith(".."):
                    self.outside.append(f"{description}: {file}")
                else:
                    self.files[place] = file

    def _parts(self, experiment: dict[str, Any], *, is_fixed: bool = False) -> None:
        """Adds the presets of an experiment, and changes their names to their places."""
        for kind in ("algorithm", "domain"):
            part = experiment.get(kind)
            holder, key = (part, "preset") if isinstance(part, dict) else (experiment, kind)
            if isinstance(name := holder.get(key), str) and ":" not in name:
                holder[key] = self._preset(f"{kind}s", name, is_fixed=is_fixed)

    def _preset(self, kind: str, name: str, *, is_fixed: bool = False) -> str:
        """Adds a preset, and those that it names; returns its name in the study.

        Args:
            kind: The folder.
            name: Its name or path.
            is_fixed: Whether the name is in a place where it cannot be changed.
        """
        try:
            path = find_preset(kind, name)
        except BadInput:  # nothing reads it, as the sweep has another in its place
            return name
        is_path = name.endswith((".yaml", ".yml"))
        if is_fixed and is_path and os.path.normpath(name) != _inside(path):
            self.outside.append(name)
            return name
        place = self._place(path)
        if kind == "experiments":
            self._parts(dict(read_yaml(path)), is_fixed=True)
        return place if is_path else name

    def _place(self, path: Path) -> str:
        """Returns the place of a file in the study."""
        place = _inside(path)
        if place is None:
            place, number = f"{_VALUES}/{path.name}", 1
            while place in self.files and self.files[place] != path:
                number += 1
                place = f"{_VALUES}/{number}/{path.name}"
            if place not in self.files:
                self.moved.append(place)
        self.files[place] = path
        return place


def _swept_presets(sweep: str) -> Iterator[tuple[str, str]]:
    """Yields folder and name of the presets among the values of a sweep."""
    for source in parse(sweep) if sweep.strip() else ():
        if source.name in PRESETS:
            values = source.arguments if isinstance(source, DrawnSource) else source.values
            for name in values:
                if name and ":" not in name:
                    yield f"{source.name}s", name


def _inside(path: Path) -> str | None:
    """Returns the path of a file from the study's folder; None where it has no place there."""
    path = _absolute(path)
    if path.is_relative_to(Path.cwd()):
        place = path.relative_to(Path.cwd())
        return None if place.parts[0] in _TAKEN else place.as_posix()
    if path.is_relative_to(PRESET_FOLDER):
        return (Path("config") / path.relative_to(PRESET_FOLDER)).as_posix()
    return None


def _absolute(path: Path) -> Path:
    """Returns an absolute path; a link in it stays one."""
    return Path(os.path.normpath(Path.cwd() / path))


def _origin(given: Given) -> Iterator[str]:
    """Yields how the sweep was started, as far as it decides runs and tables."""
    default = _absolute(Path(find_config(CONFIG.rpartition("/")[2])))
    files = [Path(file) for file in given.files if _absolute(Path(file)) != default]
    keys = [entry for entry in given.command_line if entry.partition("=")[0] not in _OF_A_START]
    if not given.files and not given.command_line:
        yield f"Composed of the {given.where}"
        return
    words = ["snakemake"]
    if files:
        words += ["--configfile", *(_name_of(shown(file)) for file in files)]
    if keys:
        words += ["--config", *map(_without_folders, keys)]
    yield f"Started with: {shlex.join(words)}"


def _without_folders(entry: str) -> str:
    """Returns an entry `key=value` without the folders of this machine."""
    key, equals, value = entry.replace(f"{Path.cwd()}/", "").partition("=")
    is_path = os.path.isfile(os.path.expanduser(value))  # noqa: PTH111, PTH113 - any text
    return key + equals + (_name_of(value) if is_path else _FOLDERS.sub("", value))


def _name_of(file: str) -> str:
    """Returns the path of a file in the study, or only its name if it is elsewhere."""
    path = _absolute(Path(os.path.expanduser(file)))  # noqa: PTH111 - there may be no home
    return file if path.is_relative_to(Path.cwd()) else path.name
