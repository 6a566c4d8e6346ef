"""What results of plug-ins depend on and ids do not cover: imported modules and declared files.

A run records it as `sources`, file -> hash. A run whose files differ from its record is outdated.
"""

import contextlib
import functools
import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from weakref import WeakKeyDictionary

from qdsweep.config.files import shown
from qdsweep.config.own_code import declared_files, find_source, imported_files
from qdsweep.config.source import code_hash
from qdsweep.errors import BadInput
from qdsweep.files import signature
from qdsweep.records.sources import source_name

# The user's modules that the warm process has imported, with their code then.
_IMPORTED: WeakKeyDictionary[ModuleType, str] = WeakKeyDictionary()


def sources_of_plugins(targets: Iterable[str]) -> dict[str, str]:
    """Returns what results of plug-ins depend on and ids do not cover, as in `sources_of`.

    These are the user's modules that they import, directly or not, and the files that their
    classes name in `depends`.

    Args:
        targets: The `module:Class`.

    Returns:
        File -> hash of its code, or of the bytes of a declared file; sorted.

    Raises:
        BadInput: A module or a declared file is missing, or a module is not Python.
    """
    targets = list(targets)
    record = {}
    for module, path in imported_files(targets).items():
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
    """Returns the file that a record names; None where it is gone."""
    if Path(name).is_file():
        return Path(name)
    if "/" not in name and not name.endswith(".py"):  # a module of another folder
        with contextlib.suppress(BadInput):
            return find_source(name)
    return None


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


def record_digest(record: Mapping[str, str]) -> str:
    """Returns a short text that is equal for equal records."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]


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
