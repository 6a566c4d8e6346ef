"""The user's code of a sweep, unchanged: what its runs name, import and declare."""

import ast
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import qdsweep
from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.config.own_code import INSTALLED, find_source, imported_modules, plugin_folders
from qdsweep.errors import BadInput
from qdsweep.records.paths import Results, RunFiles
from qdsweep.records.results import read_config
from qdsweep.records.sources import code_of_run

# Where `qdsweep run` looks for it in the unpacked folder.
FOLDER = "config/plugins"
# A `module:Class`, or an environment's `module:Name-v0`.
_NAME = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w/-]*")
_INSTALLED_FOLDERS = ("site-packages", "dist-packages")


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
    targets: list[str] = []
    for run, files in _one_of_each_kind(runs):
        experiment = compose(str(files.config))
        code = code_of_run(run, experiment, results)
        if not code and experiment.own_code:
            raise BadInput(
                f"the source of {', '.join(experiment.own_code)} has changed since {run} was "
                f"made, and {results.sources} does not have it: the package could not compute "
                "that run. Restore the source, or start the sweep again, which computes such runs "
                "with the present one"
            )
        kept |= {place: source for place, source in code.items() if place not in kept}
        targets += _targets(experiment)
    # Also what was imported then, and is no longer.
    mine = {path for path in kept if not path.startswith(f"{INSTALLED}/")}
    sources = {f"{FOLDER}/{path}": kept[path] for path in mine}
    for path, (place, file) in users_modules(targets).items():
        source = kept.get(path, kept.get(f"{INSTALLED}/{path}"))
        sources[place] = file.read_bytes() if source is None else source
    return sources | dict(declared_files(sources))


def _targets(experiment: Experiment) -> list[str]:
    """Returns the `module:NAME` of an experiment, those of environments too."""
    return [*experiment.own_code, *(name for name in experiment.domain.packages if ":" in name)]


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


def users_modules(targets: Iterable[str]) -> dict[str, tuple[str, Path]]:
    """Finds the modules of some `module:NAME`, and all that they import, but for packages.

    A module is the user's if it is in config/plugins/, in the working directory, or in another
    folder than those of installed packages. Nothing is imported.

    Args:
        targets: The `module:NAME`.

    Returns:
        Path of the module, such as lander/tasks.py -> its place in a study, and its file.
    """
    found: dict[str, tuple[str, Path]] = {}
    waiting = [name for target in targets for name in _with_parents(target.partition(":")[0])]
    seen = set(waiting)
    while waiting:
        module = waiting.pop()
        path = _file_of(module)
        if path is None:
            continue
        is_package = path.name == "__init__.py"
        name = module.replace(".", "/") + ("/__init__.py" if is_package else ".py")
        found[name] = _place(path, name), path
        package = module if is_package else module.rpartition(".")[0]
        others = dict.fromkeys(imported_modules(path.read_bytes(), package))
        waiting += [other for other in others if other not in seen]
        seen.update(others)
    return dict(sorted(found.items()))


def _with_parents(module: str) -> list[str]:
    words = module.split(".")
    return [".".join(words[: end + 1]) for end in range(len(words))]


def _file_of(module: str) -> Path | None:
    """Returns the file of a module of the user's; None of any other."""
    if module.partition(".")[0] in sys.stdlib_module_names:
        return None
    try:
        path = find_source(f"{module}:")
    except BadInput:  # it is built in, is missing, or has no file
        return None
    if any(path.is_relative_to(folder) for folder in plugin_folders()):
        return path
    others = (Path(sysconfig.get_path("stdlib")), Path(qdsweep.__file__).parent)
    is_installed = {*path.parts} & {*_INSTALLED_FOLDERS} or any(map(path.is_relative_to, others))
    return None if is_installed else path


def _place(path: Path, name: str) -> str:
    """Returns the place of a module in a study: where it is, or config/plugins/."""
    if not any(path.is_relative_to(folder) for folder in plugin_folders()):
        with suppress(ValueError):
            return path.relative_to(Path.cwd()).as_posix()
    return f"{FOLDER}/{name}"


def declared_files(sources: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """Yields the files that classes declare by an attribute such as `depends = ("data/map.npy",)`.

    Args:
        sources: Path in a study -> source.

    Raises:
        BadInput: Such a file is missing, or outside the working directory.
    """
    for place, source in sources.items():
        for name in _declared(ast.parse(source)):
            path = Path.cwd() / name
            if not path.resolve().is_relative_to(Path.cwd()) or not path.is_file():
                raise BadInput(
                    f"{place}: depends = {name!r}: there is no such file in {Path.cwd()}; name "
                    "files by their path from there"
                )
            yield Path(name).as_posix(), path.read_bytes()


def _declared(tree: ast.Module) -> Iterator[str]:
    """Yields the texts of `depends` in the classes of a module."""
    for node in (item for item in ast.walk(tree) if isinstance(item, ast.ClassDef)):
        for item in node.body:
            if not isinstance(item, ast.Assign | ast.AnnAssign):
                continue
            target = item.targets[0] if isinstance(item, ast.Assign) else item.target
            if isinstance(target, ast.Name) and target.id == "depends":
                for part in ast.walk(item.value) if item.value else ():
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield part.value
