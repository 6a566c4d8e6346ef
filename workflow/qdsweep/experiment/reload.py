"""Reload files (checkpoints of a run): its whole state, written so that no kill can corrupt it.

A pickle calls the functions and classes that it names. A reload file without the user's own digest
may therefore only name those of a list. Files of earlier releases have no digest, and files from
another home or a copied folder have another user's.

Files of earlier releases are translated when they are read: their names and their state. A release
that renames something in the payload only needs to extend this module.
"""

import copyreg
import enum
import hashlib
import io
import json
import logging
import pickle
import shutil
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import IO, Any, NamedTuple

import numpy as np
from pydantic import TypeAdapter

from qdsweep.config.families import AlgorithmSettings
from qdsweep.config.family import Family
from qdsweep.config.keys import models_in
from qdsweep.config.own_code import plugin_folders
from qdsweep.errors import BadInput
from qdsweep.experiment.attempt import Attempt
from qdsweep.experiment.state import Current, State, no_seconds
from qdsweep.features import modules
from qdsweep.files import atomic
from qdsweep.host.key import key_file, own_digest
from qdsweep.host.permissions import is_kept_alone
from qdsweep.records.metrics_file import begins_with, read_lines
from qdsweep.records.paths import StateDir
from qdsweep.records.reload_head import (
    FORMAT,
    MAGIC,
    is_signed,
    of_others,
    read_head,
    refusing_unreadable,
    remedy_for,
)

_FEATURES = tuple(modules("settings"))
# Packages whose classes may be named.
_PACKAGES = (
    *("qdsweep.algorithms", "qdsweep.experiment.state"),
    *(package for feature in _FEATURES for package in feature.PICKLED),
    *("ribs.archives", "ribs.emitters", "ribs.schedulers"),
)
# This module evaluates text options as code.
_NEVER = "ribs.emitters.opt._pycma_es"
_NAMES = {
    "builtins": {"bytearray", "complex", "frozenset", "object", "range", "set", "slice"},
    "collections": {"Counter", "OrderedDict", "defaultdict", "deque"},
    "numpy": {"dtype", "ndarray"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
    "numpy.random._mt19937": {"MT19937"},
    "numpy.random._pcg64": {"PCG64", "PCG64DXSM"},
    "numpy.random._philox": {"Philox"},
    "numpy.random._pickle": {
        *("__bit_generator_ctor", "__generator_ctor", "__randomstate_ctor"),
    },
    "numpy.random._sfc64": {"SFC64"},
    "numpy.random.bit_generator": {"SeedSequence", "__pyx_unpickle_SeedSequence"},
    "random": {"Random"},
    "scipy.spatial._ckdtree": {"cKDTree"},
    "scipy.spatial._kdtree": {"KDTree"},
    "sortedcontainers.sortedlist": {"SortedList"},
    "qdsweep.algorithms.ribs.internals": {"restore_store"},
    "qdsweep.domains.base": {"Actor", "Exploration", "Record", "Token", "Unroll"},
    "qdsweep.engines.batch": {"Batch", "_repeated"},
    "qdsweep.experiment.reload": {"read_settings"},
    # In reload files of earlier releases, an algorithm's settings are models of these classes.
    "qdsweep.config.archive_kinds": {
        *("CVTArchive", "DNSArchive", "GridArchive", "ProximityArchive"),
        "SlidingBoundariesArchive",
    },
    "qdsweep.config.emitters": {
        *("EvolutionStrategy", "Gaussian", "GradientArborescence", "GradientOperator", "IsoLine"),
    },
    **{
        feature.__name__: {
            model.__name__
            for family in feature.FAMILIES
            for kinds in (family, *(field.annotation for field in family.model_fields.values()))
            for model in models_in(kinds)
            if model.__module__ == feature.__name__
        }
        for feature in _FEATURES
    },
}

# Module, or MODULE:NAME, of an earlier release -> the current one.
_MOVED = {
    "qdsweep.algorithms.ribs.centroids": "qdsweep.algorithms.ribs.archives",
    "qdsweep.algorithms.ribs.emitters": "qdsweep.algorithms.ribs.algorithm",
    "qdsweep.algorithms.ribs.own_archive": "qdsweep.algorithms.ribs.archives",
    "qdsweep.algorithms.ribs.result_archive": "qdsweep.algorithms.ribs.archives",
    "qdsweep.config.archives": "qdsweep.config.archive_kinds",
    "qdsweep.engines.base": "qdsweep.engines.batch",
    "qdsweep.experiment.reload:_restore_store": "qdsweep.algorithms.ribs.internals:restore_store",
    **{former: now for feature in _FEATURES for former, now in feature.MOVED.items()},
}
KEPT = 2
log = logging.getLogger(__name__)
_FAMILIES = (model for model in models_in(AlgorithmSettings) if issubclass(model, Family))
_Readable = io.BufferedReader | io.BytesIO


def may_import(module: str, plugins: Collection[str]) -> bool:
    """Returns whether a module may be imported for a file without the user's digest.

    Args:
        module: Its name.
        plugins: The `module:name` of the user's classes in the experiment, which a run always
            imports.
    """
    return (
        module in _NAMES
        or (_is_in(module, _PACKAGES) and module != _NEVER)
        or _is_own(module, plugins)
    )


def may_name(module: str, name: str, target: Any, plugins: Collection[str]) -> bool:
    """Returns whether such a file may name an object of an allowed module."""
    if name in _NAMES.get(module, ()) or (module == "numpy" and _is_scalar(target)):
        return True
    kinds = (type, FunctionType) if _is_own(module, plugins) else (type,)
    is_at_home = isinstance(target, kinds) and (target.__module__, target.__qualname__) == (
        module,
        name,
    )
    return is_at_home and (_is_own(module, plugins) or _is_in(module, _PACKAGES))


def _is_scalar(target: Any) -> bool:
    return isinstance(target, type) and issubclass(target, np.generic)


def _is_in(module: str, packages: Collection[str]) -> bool:
    return any(f"{module}.".startswith(f"{package}.") for package in packages)


def _is_own(module: str, plugins: Collection[str]) -> bool:
    """Returns whether a module belongs to the user's plug-ins."""
    top = module.split(".")[0]
    if any(target.partition(":")[0].split(".")[0] == top for target in plugins):
        return True
    places = [folder / top for folder in plugin_folders()]
    return any(Path(f"{place}.py").is_file() or place.is_dir() for place in places)


def _today(module: str, name: str) -> tuple[str, str]:
    """Returns the current module and name for those of an earlier release."""
    now = _MOVED.get(f"{module}:{name}") or _MOVED.get(module, module)
    module, _, renamed = now.partition(":")
    return module, renamed or name


class UnknownName(Exception):
    """A payload has a name that only a file with the user's own digest may have."""


class OtherPayload(Exception):
    """A payload is not the state of a run."""


def load_state(payload: IO[bytes], *, is_own: bool, plugins: Collection[str] = ()) -> State:
    """Returns the state in the payload of a reload file, of this release or an earlier one.

    Args:
        payload: The file, positioned at its payload.
        is_own: Whether it has the user's own digest; if not, only known names are allowed.
        plugins: The experiment's `module:name`.

    Raises:
        UnknownName: It has another name. That module was not imported, and nothing was called.
        OtherPayload: It has no state.
    """
    state = (_Unpickler(payload) if is_own else _Wary(payload, plugins)).load()
    if not isinstance(state, State):
        raise OtherPayload(type(state).__name__)
    for name, value in {"told": [], "current": Current(), "idle": 0}.items():
        vars(state).setdefault(name, value)
    if state.pending is not None:
        # Such a file has counted them already.
        vars(state.pending).setdefault("failed", np.zeros_like(state.pending.done))
    if "scheduler" in vars(state):
        _give_algorithm(state)
    state.seconds = no_seconds() | state.seconds
    return state


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return super().find_class(*_today(module, name))


class _Wary(_Unpickler):
    def __init__(self, payload: IO[bytes], plugins: Collection[str]) -> None:
        super().__init__(payload)
        self._plugins = plugins

    def find_class(self, module: str, name: str) -> Any:
        module, name = _today(module, name)
        if may_import(module, self._plugins):
            target = super().find_class(module, name)
            if may_name(module, name, target, self._plugins):
                return target
        raise UnknownName(f"{module}.{name}")


def _give_algorithm(state: State) -> None:
    """Wraps pyribs' scheduler, which states of up to 0.1.0 have in place of an algorithm."""
    from qdsweep.algorithms.ribs.algorithm import RibsAlgorithm

    state.algorithm = RibsAlgorithm(vars(state).pop("scheduler"), groups=0)
    if state.pending is not None:
        state.algorithm.asked(gradients=state.pending.batch.gradients)


class Saved(NamedTuple):
    """The content of a reload file.

    Attributes:
        state: The state.
        header: `iteration`, `fingerprint`, `versions`, and the `sums` of `save`.
    """

    state: State
    header: dict[str, Any]


def save_state(
    state: State,
    files: StateDir,
    fingerprint: str,
    versions: dict[str, str],
    sums: dict[str, Any] | None = None,
) -> Path:
    """Writes `reload-ITERATION.pkl`, and keeps this file and the previous one.

    A file of a later iteration is also removed, because it was skipped when this state was read.

    Args:
        state: The state, between two iterations or with a pending batch.
        files: The run's `state/`.
        fingerprint: The experiment's fingerprint.
        versions: The versions that the state was computed with.
        sums: Checksums of the files that belong to it, `metrics` and `history`, and the `domain`.

    Returns:
        The path of the file, which is already on the disk.
    """
    header = {
        "format": FORMAT,
        "fingerprint": fingerprint,
        "iteration": state.iterations,
        "versions": versions,
        **(sums or {}),
    }
    path = files.reload(state.iterations)
    _write(path, header, lambda file: dump(state, file))
    written = files.reloads()
    keep_only(files, written[written.index(path) :][:KEPT])
    return path


def fits(files: StateDir) -> Callable[[dict[str, Any]], bool]:
    """Returns header -> whether metrics.csv still starts with the rows of that reload file."""
    lines = read_lines(files.metrics)
    return lambda header: begins_with(lines, header["iteration"], header.get("metrics"))


def dump(state: State, file: Any) -> None:
    """Writes the payload of a reload file."""
    pickler = pickle.Pickler(file, protocol=5)
    pickler.dispatch_table = {**copyreg.dispatch_table, **_PLAIN, **state.algorithm.reducers}
    pickler.dump(state)


def _reduce_settings(settings: Family) -> tuple[Any, ...]:
    """Pickles an algorithm's settings as plain data, without a name of a config class."""
    return read_settings, (settings.model_dump(),)


_PLAIN: dict[type, Callable[[Any], Any]] = dict.fromkeys(_FAMILIES, _reduce_settings)


def read_settings(data: dict[str, Any]) -> Family:
    """Restores the settings that `_reduce_settings` pickled. Reload files name this function.

    Texts and mappings are validated, because they determine the classes. Other values are not,
    because the schedule may have changed them during the run.
    """
    parts = {key: value for key, value in data.items() if isinstance(value, str | dict)}
    model: Any = TypeAdapter(AlgorithmSettings).validate_python(parts)
    read: Family = model.model_copy(update={key: data[key] for key in data.keys() - parts.keys()})
    return read


def adopt(files: StateDir) -> list[Path]:
    """Signs reload files of other users with the user's own digest, unchanged.

    Args:
        files: A run's `state/`.

    Returns:
        The files that are complete.

    Raises:
        BadInput: The user has no key, or may not read a file.
    """
    adopted = []
    for path in files.reloads():
        try:
            with refusing_unreadable(path):
                header, payload, _ = _open(path)
        except (OSError, ValueError) as error:
            log.warning("%s is skipped: %s", path, error)
            continue
        if own_digest("") is None:
            raise BadInput(f"{path} is not adopted: {key_file()} cannot be created or read")
        with payload:
            _write(path, {**header, "format": FORMAT}, partial(shutil.copyfileobj, payload))
        adopted.append(path)
    return adopted


def verify(path: Path) -> dict[str, Any]:
    """Returns the header of a reload file, and loads nothing of its payload.

    Raises:
        ValueError: The file is truncated or corrupt.
    """
    header, payload, _ = _open(path)
    payload.close()
    return header


def keep_only(files: StateDir, wanted: list[Path]) -> None:
    """Removes all reload files except these."""
    for path in files.reloads():
        if path not in wanted:
            path.unlink(missing_ok=True)  # the listing may be outdated


def newest(attempt: Attempt, versions: dict[str, str]) -> Saved | None:
    """Reads the newest complete reload file from which an attempt can resume.

    Args:
        attempt: The attempt.
        versions: The current versions.

    Returns:
        Its content, or None if there is no such file.

    Raises:
        BadInput: A reload file belongs to another experiment, other versions, or another user.
    """
    own, inherited = attempt.identity.fingerprint, attempt.inherited

    def is_donors(header: dict[str, Any]) -> bool:
        return inherited is not None and inherited.is_of(header)

    def check(path: Path, header: dict[str, Any]) -> None:
        if header["fingerprint"] != own and not is_donors(header):
            raise BadInput(
                f"{path} is a reload file of another experiment (its fingerprint is "
                f"{header['fingerprint'][:10]}, this run's is {own[:10]}). Remove it, "
                "or start the run in another folder"
            )
        allowed = attempt.options.allow_version_change
        _check_versions(path, header["versions"], versions, allowed)

    plugins = attempt.experiment.algorithm.plugins
    for path, saved in _usable(attempt.run.state, plugins, check):
        if saved.state.is_between_iterations or not is_donors(saved.header):
            return saved
        log.warning("%s is skipped: its donor was in the middle of the next iteration", path)
    return None


def last_saved(files: StateDir, plugins: Collection[str] = ()) -> Saved | None:
    """Reads the newest complete reload file of a run, whatever its experiment and versions.

    Args:
        files: The run's `state/`.
        plugins: The experiment's `module:name`, which were imported.

    Returns:
        Its content, or None if there is no such file.

    Raises:
        BadInput: A reload file belongs to another user.
    """
    return next((saved for _, saved in _usable(files, plugins)), None)


def _usable(
    files: StateDir,
    plugins: Collection[str],
    check: Callable[[Path, dict[str, Any]], None] = lambda path, header: None,
) -> Iterator[tuple[Path, Saved]]:
    """Yields the complete reload files that fit metrics.csv, the newest first.

    Args:
        files: The run's `state/`.
        plugins: The experiment's `module:name`.
        check: Raises BadInput for a file, by its path and header, before its payload is loaded.
    """
    is_fitting = fits(files)
    for path in files.reloads():
        try:
            with refusing_unreadable(path):
                header, payload, origin = _open(path)
        except (OSError, ValueError) as error:
            log.warning("%s is skipped: %s", path, error)
            continue
        with payload:
            check(path, header)
            if not is_fitting(header):
                log.warning(
                    "%s is skipped: metrics.csv ends before its iteration, or has changed",
                    path,
                )
                continue
            state = _load(path, payload, origin, plugins)
        yield path, Saved(state, header)
    if files.reloads():
        log.warning("no reload file is usable: the run is computed again from its start")


class _Summed:
    """Writes a file and computes its checksum in one pass, as payloads may be very large."""

    def __init__(self, file: IO[bytes], begun: "hashlib._Hash") -> None:
        self.sum, self._file = begun, file

    def write(self, data: Any) -> int:
        self.sum.update(data)
        return self._file.write(data)


def _write(path: Path, header: dict[str, Any], put: Callable[[Any], None]) -> None:
    """Writes a reload file with the user's own digest. `put` writes the payload."""
    # From the start, no other user may open it for writing, by an access list of the folder either.
    with atomic(path, durable=True, mode=0o644) as file:
        file.write(_head(header, "0" * 64))  # a placeholder until the checksum is known
        content = _Summed(file, _begun(header))
        put(content)
        file.seek(0)
        file.write(_head(header, content.sum.hexdigest()))


def _head(header: dict[str, Any], checksum: str) -> bytes:
    sums = {"sha256": checksum, "hmac": own_digest(checksum)}
    return MAGIC + json.dumps({**header, **sums}).encode() + b"\n"


class _Origin(enum.Enum):
    """The possible authors of a reload file."""

    OWN = "it has the user's own digest"
    KEPT = "only the user owns it and can write it, so the user wrote or copied it"
    OTHERS = "anybody"


def _open(path: Path) -> tuple[dict[str, Any], _Readable, _Origin]:
    """Returns header, payload and origin.

    Raises:
        ValueError: The file is truncated or corrupt.
    """
    file: _Readable = path.open("rb")
    try:
        is_kept = is_kept_alone(file.fileno(), path.parent)
        header, checksum, digest = read_head(file)
        if not is_kept:  # a copy in memory cannot change between the check and its use
            with file:
                file = io.BytesIO(file.read())
        start = file.tell()
        if checksum != hashlib.file_digest(file, partial(_begun, header)).hexdigest():
            raise ValueError("it is truncated or corrupt (its checksum is wrong)")
        file.seek(start)
    except BaseException:
        file.close()
        raise
    if is_signed(checksum, digest):
        return header, file, _Origin.OWN
    return header, file, _Origin.KEPT if is_kept else _Origin.OTHERS


def _load(path: Path, payload: IO[bytes], origin: _Origin, plugins: Collection[str]) -> State:
    """Unpickles the state, with the names that the origin allows."""
    if origin is _Origin.OTHERS:
        raise BadInput(of_others(path))
    try:
        return load_state(payload, is_own=origin is _Origin.OWN, plugins=plugins)
    except UnknownName as name:
        raise BadInput(
            f"{path} is refused: it lacks your digest ({key_file()}), and names {name}, which "
            f"does not belong to qdsweep, pyribs or numpy; {remedy_for(path)}"
        ) from None
    except OtherPayload as kind:
        raise BadInput(
            f"{path} is refused: its content is no state of a run, but of the type {kind}. "
            "qdsweep has not written it: remove it"
        ) from None


def _begun(header: dict[str, Any]) -> "hashlib._Hash":
    """Starts the checksum with the header. The payload follows."""
    return hashlib.sha256(json.dumps(header, sort_keys=True).encode())


def _check_versions(path: Path, old: dict[str, str], new: dict[str, str], allowed: bool) -> None:
    changed = [
        f"{name} {old[name]} -> {new[name]}"
        for name in sorted(
            old.keys() & new.keys()
        )  # the run does not use a library that one side lacks
        if old[name] != new[name]
    ]
    if changed and not allowed:
        raise BadInput(
            f"{path} was written with other versions ({', '.join(changed)}). Resume with the old "
            "ones, or give --allow-version-change and accept a result of mixed versions"
        )
    if changed:
        log.warning("resumes with other versions: %s", ", ".join(changed))
