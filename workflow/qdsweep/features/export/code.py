"""The user's code of a sweep, unchanged: what its runs name, import and declare."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from qdsweep.config.compose import compose
from qdsweep.config.own_code import (
    INSTALLED,
    declared_files,
    own_modules,
    plugin_folders,
    source_paths,
)
from qdsweep.errors import BadInput
from qdsweep.records.dependencies import accepted, recorded
from qdsweep.records.paths import Results, RunFiles
from qdsweep.records.results import read_config
from qdsweep.records.sources import code_of_run, is_as_recorded
from qdsweep.text import listed

# Where `qdsweep run` looks for it in the unpacked folder.
FOLDER = "config/plugins"
# A `module:Class`, or an environment's `module:Name-v0`.
_NAME = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w/-]*")


def packed_code(runs: Mapping[str, RunFiles], results: Results) -> dict[str, bytes]:
    """Returns the sources of the user's code of some runs, with the files that classes declare.

    Sources are as they were when the runs were made.

    Args:
        runs: Run id -> its files.
        results: The folder results/.

    Returns:
        Path in the unpacked folder -> content.

    Raises:
        BadInput: A source has changed and is no longer known, or a declared file is missing.
    """
    kept: dict[str, bytes] = {}
    plugins: dict[str, None] = {}
    others: dict[str, None] = {}
    for run, files in _one_of_each_kind(runs):
        experiment = compose(str(files.config))
        code = code_of_run(run, experiment, results, recorded(results.run(run).state))
        if not code and experiment.own_code:
            raise BadInput(
                f"the source of {', '.join(experiment.own_code)} has changed since {run} was "
                f"made, and {results.sources} does not have it: the package could not compute "
                "that run. Restore the source, or start the sweep again, which computes such runs "
                "with the present one"
            )
        kept |= {place: source for place, source in code.items() if place not in kept}
        plugins |= dict.fromkeys(experiment.plugins)
        others |= dict.fromkeys([*experiment.own_code, *experiment.domain.modules])
    # Also what was imported then, and is no longer.
    mine = {path for path in kept if not path.startswith(f"{INSTALLED}/")}
    sources = {f"{FOLDER}/{path}": kept[path] for path in mine}
    for module, file in sorted(own_modules([*plugins, *others]).items()):
        path = module.replace(".", "/") + ("/__init__.py" * (file.name == "__init__.py") or ".py")
        source = kept.get(path, kept.get(f"{INSTALLED}/{path}"))
        sources[_place(file, path)] = file.read_bytes() if source is None else source
    return sources | dict(_declared(plugins))


def made_with_others(
    runs: Iterable[str], results: Results, packed: Mapping[str, bytes]
) -> Iterator[str]:
    """Yields each run that other code than the packed one has made, with the files.

    Args:
        runs: The runs.
        results: The folder results/.
        packed: Path in the package -> content.
    """
    for run in runs:
        state = results.run(run).state
        earlier = accepted(state)  # the code that has computed it comes first
        record = earlier[0]["sources"] if earlier else recorded(state)
        files = [
            name
            for name, known in record.items()
            if not any(is_as_recorded(packed.get(place), known) for place in _places(name))
        ]
        if files:
            yield f"{run} ({listed(files, most=3)})"


def _places(name: str) -> list[str]:
    """Returns where the package may have a file of a record, or a module of another folder."""
    return [name, *(f"{FOLDER}/{path}" for path in source_paths(name))]


def _one_of_each_kind(runs: Mapping[str, RunFiles]) -> Iterator[tuple[str, RunFiles]]:
    """Yields a run for each set of names that its config has."""
    seen = set()
    for run, files in sorted(runs.items()):
        names = frozenset(_names(read_config(files.config)))
        if names and names not in seen:
            seen.add(names)
            yield run, files


def _names(data: Any) -> Iterator[str]:
    """Yields what looks like a `module:Class`, or a `module:Name-v0`."""
    if isinstance(data, str) and _NAME.fullmatch(data):
        yield data
    elif isinstance(data, dict | list):
        for value in data.values() if isinstance(data, dict) else data:
            yield from _names(value)


def _place(path: Path, name: str) -> str:
    """Returns the place of a module in a study: where it is, or config/plugins/."""
    if not any(path.is_relative_to(folder) for folder in plugin_folders()):
        with suppress(ValueError):
            return path.relative_to(Path.cwd()).as_posix()
    return f"{FOLDER}/{name}"


def _declared(plugins: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yields the files that classes declare by `depends`.

    Raises:
        BadInput: Such a file is missing, or outside the working directory.
    """
    for plugin in plugins:
        for name in declared_files(plugin):
            path = Path(name)
            if not path.resolve().is_relative_to(Path.cwd()) or not path.is_file():
                raise BadInput(
                    f"{plugin}: depends names {name!r}, and there is no such file in {Path.cwd()}: "
                    "put it there, or correct depends"
                )
            yield path.as_posix(), path.read_bytes()
