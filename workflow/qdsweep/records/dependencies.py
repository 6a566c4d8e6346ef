"""What results of plug-ins depend on and ids do not cover: imported modules and declared files.

A run records it as `sources`, file -> hash. A run whose files differ from its record is outdated.
"""

import contextlib
import functools
import hashlib
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from qdsweep.config.experiment import Experiment
from qdsweep.config.files import shown
from qdsweep.config.own_code import (
    declared_files,
    find_source,
    imported_files,
    load_plugin,
    module_in,
)
from qdsweep.config.source import code_hash
from qdsweep.errors import BadInput
from qdsweep.files import read_json_if_whole, signature
from qdsweep.host.lock import Lock
from qdsweep.records.paths import Results, RunDir, StateDir
from qdsweep.records.results import read_summary, write_summary
from qdsweep.records.sources import kept_sources, source_name
from qdsweep.records.status import write_status
from qdsweep.text import listed, plural

OUTDATED = "outdated"
"""The state of a run whose files differ from its record."""
ACCEPTED = "accepted"
"""The key with the earlier records of a run whose results were taken over for other code."""

WAYS_BACK = "Restore the code, or give --config outdated=recompute or outdated=accept"
"""What the user can do with outdated runs, in short."""

# The user's modules that the warm process has imported, with their code then.
_IMPORTED: WeakKeyDictionary[ModuleType, str] = WeakKeyDictionary()


def sources_of_experiment(experiment: Experiment) -> dict[str, str]:
    """Returns the record of an experiment; see `sources_of_plugins`."""
    return sources_of_plugins(experiment.plugins, experiment.domain.modules)


def sources_of_plugins(targets: Iterable[str], modules: Iterable[str] = ()) -> dict[str, str]:
    """Returns what results of plug-ins depend on and ids do not cover, as in `sources_of`.

    These are the user's modules that they import, directly or not, and the files that their
    classes name in `depends`.

    Args:
        targets: The `module:Class`.
        modules: Modules that are imported next to them.

    Returns:
        File -> hash of its code, or of the bytes of a declared file; sorted.

    Raises:
        BadInput: A module or a declared file is missing, or a module is not Python.
    """
    targets = list(targets)
    record = {}
    for module, path in imported_files(targets, modules).items():
        try:
            record[source_name(module, path)] = code_hash(path.read_bytes())
        except (SyntaxError, ValueError) as error:
            raise BadInput(f"{path} is not valid Python: {error}") from None
    for target in targets:
        for name in declared_files(target):
            if not Path(name).is_file():
                raise BadInput(
                    f"{target}: {find_source(target)} names {name} in depends, and "
                    f"{Path.cwd() / name} is no file: put it there, or correct depends"
                )
            record[name] = _hashes(Path(name))[0]
    return dict(sorted(record.items()))


def differing(record: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the files of a record that are gone, or are not as they were."""
    return tuple(name for name, known in record.items() if known not in _hashes(_located(name)))


def _located(name: str) -> Path | None:
    """Returns the file that a record names, or the one that hides it; None where it is gone."""
    path = Path(name).absolute()
    if path.is_file():
        module = module_in(path) if path.suffix == ".py" else ""
    elif "/" not in name and not name.endswith(".py"):  # a module of another folder
        module = name
    else:
        return None
    with contextlib.suppress(BadInput, ImportError, ValueError):
        return find_source(module) if module else path
    return path if path.is_file() else None


def _hashes(path: Path | None) -> tuple[str, ...]:
    """Returns the hash of a file, and that of its code if it has any; none of no file."""
    seen = signature(path) if path else None
    return () if seen is None else _hashes_at(str(path and path.absolute()), *seen)


@functools.lru_cache(maxsize=4096)  # each of many runs asks for the same files
def _hashes_at(path: str, *seen: int) -> tuple[str, ...]:
    with open(path, "rb") as file:  # noqa: PTH123 - it may be large
        whole = hashlib.file_digest(file, "sha256").hexdigest()
    if path.endswith(".py"):
        with contextlib.suppress(SyntaxError, ValueError):
            return whole, code_hash(Path(path).read_bytes())
    return (whole,)


def find_kept(name: str, known: str, results: Results) -> Path | None:
    """Returns the file in results/sources/ that a record names; None where no start kept it.

    Args:
        name: The file, or the module of another folder.
        known: Its hash in the record.
        results: The folder results/.
    """
    stem = name.replace(".", "/")
    is_file = name.endswith(".py")
    paths = [Path(name)] if is_file else [Path(f"{stem}.py"), Path(f"{stem}/__init__.py")]
    # A folder has the place of a module inside config/plugins/.
    ends = [Path(*path.parts[start:]) for path in paths for start in range(len(path.parts))]
    files = (folder / end for folder in kept_sources(results) for end in ends)
    return next((file for file in files if file.is_file() and known in _hashes(file)), None)


def recorded(state: StateDir) -> dict[str, str]:
    """Returns the record of a run; empty where it has none, as with earlier releases."""
    record = read_json_if_whole(state.status).get("sources")
    return record if isinstance(record, dict) else {}


def accepted(state: StateDir) -> list[dict[str, Any]]:
    """Returns the earlier records of a run whose results were taken over for other code."""
    earlier = read_json_if_whole(state.status).get(ACCEPTED)
    return earlier if isinstance(earlier, list) else []


def refuse_other_code(run: RunDir) -> None:
    """Refuses to resume a run that other code has started.

    Raises:
        BadInput: The message names the files and the ways back.
    """
    files = differing(recorded(run.state)) if run.state.reloads() else ()
    if files:
        raise BadInput(
            f"{run.path}: {changed_text(files)} since the run was started, so it is not resumed: "
            "its results would be of two codes. Restore the code, or start its sweep with "
            "--config outdated=recompute or outdated=accept, or give another --out"
        )


def changed_text(files: Sequence[str]) -> str:
    """Returns the words for the files of an outdated run: `simulator.py has changed`."""
    names = [Path(file).name for file in files]
    return f"{listed(names, most=3)} {'has' if len(names) == 1 else 'have'} changed"


def accepted_text(count: int) -> str:
    """Returns the words for runs whose results were taken over for other code."""
    were = "was" if count == 1 else "were"
    return f"{plural(count, 'run')} {were} computed with other code, which the authors accepted"


def record_code(run: RunDir, record: Mapping[str, str]) -> None:
    """Makes the current code that of a run that other code has computed.

    Args:
        run: The run. Its earlier record stays, under `accepted`.
        record: The code, from `sources_of_plugins`.
    """
    with Lock(run.state.lock):
        before = recorded(run.state)
        if not differing(before):  # another start was quicker
            return
        now = datetime.now(UTC).isoformat(timespec="seconds")
        earlier = [*accepted(run.state), {"until": now, "sources": before}]
        code = {ACCEPTED: earlier, "sources": dict(record)}
        if run.state.summary.exists():  # first: after a kill, the run is still outdated
            summary = read_summary(run.state)
            others = {k: v for k, v in summary.get("sources", {}).items() if k not in before}
            is_sealed = run.state.sums.exists()
            run.state.unseal()
            write_summary(run.state, {**summary, **code, "sources": others | {**record}})
            if is_sealed:
                run.state.seal()
            if run.summary.exists():
                run.publish()
        write_status(run.state, {**read_json_if_whole(run.state.status), **code})


def name_code(state: StateDir, record: Mapping[str, str]) -> None:
    """Gives a finished run of an earlier release, which recorded nothing, the current code."""
    with contextlib.suppress(OSError):  # a folder of another user
        write_status(state, {**read_json_if_whole(state.status), "sources": dict(record)})


def set_aside(run: RunDir, results: Results) -> None:
    """Moves the folder of an outdated run to results/outdated/, where nothing is replaced.

    Its new name is the run's id, with a number where an earlier one has that name.
    """
    results.outdated.mkdir(exist_ok=True)
    with Lock(run.state.lock) as lock:
        if not differing(recorded(run.state)):  # another start was quicker
            return
        for number in count(1):
            place = RunDir(results.outdated / (run.name + f".{number}" * (number > 1)))
            if not place.path.exists():
                break
        shutil.move(run.path, place.path)
        lock.path = place.state.lock
        if (films := results.explore / run.name).is_dir():
            shutil.move(films, place.path / results.explore.name)


def note_imports(targets: Iterable[str]) -> None:
    """Notes the code of the modules that plug-ins have just imported into this process."""
    for module, path in imported_files(targets).items():
        if module in sys.modules:
            _IMPORTED.setdefault(sys.modules[module], code_hash(path.read_bytes()))


def refuse_earlier_imports(targets: Iterable[str]) -> None:
    """Refuses a process that has imported other code than the files have now.

    Raises:
        BadInput: A file has changed since the sweep was started.
    """
    for module, path in imported_files(targets).items():
        loaded = sys.modules.get(module)
        if loaded and _IMPORTED.get(loaded, code_hash(path.read_bytes())) not in _hashes(path):
            raise BadInput(
                f"{shown(path)} has changed since this sweep was started: start it again"
            )


def refuse_hidden_files(targets: Iterable[str]) -> None:
    """Refuses loaded plug-ins whose `depends` is not that in their source, which a start reads.

    Raises:
        BadInput: A class gets `depends` in another way.
    """
    for target in targets:
        named = getattr(load_plugin(target), "depends", ())
        if tuple(named) != (written := declared_files(target)):
            raise BadInput(
                f"{target}: {find_source(target)}: depends is {tuple(named)}, but "
                f"{written} in its source: write it in the body of the class"
            )
