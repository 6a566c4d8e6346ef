"""Reload files: the whole state of a run, written so that no kill can spoil it."""

import copyreg
import hashlib
import json
import logging
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

from qdsweep.errors import BadInput
from qdsweep.experiment.migration import load
from qdsweep.experiment.state import State
from qdsweep.files import atomic
from qdsweep.records.run_dir import StateDir

FORMAT = 2
KEPT = 2
_MAGIC = b"qdsweep reload file\n"

log = logging.getLogger(__name__)


class Inherited(NamedTuple):
    """The one reload file of a donor that a run may go on from.

    Attributes:
        iteration: Of the file: that of the last change of the run's schedule.
        fingerprints: Of the experiment without that change.
    """

    iteration: int
    fingerprints: frozenset[str]

    def is_of(self, header: dict[str, Any]) -> bool:
        """Whether a reload file is the one."""
        same = header["fingerprint"] in self.fingerprints
        return same and bool(header["iteration"] == self.iteration)


def save(state: State, files: StateDir, fingerprint: str, versions: dict[str, str]) -> Path:
    """Writes `reload-ITERATION.pkl`; keeps it and the one before.

    A file of a later iteration was passed over when this state was read, so it goes too.

    Args:
        state: The state, between two iterations or with a pending batch.
        files: The run's `state/`.
        fingerprint: The experiment's fingerprint.
        versions: The versions that the state was computed with.

    Returns:
        The file. When this returns, the disk has it.
    """
    header = {
        "format": FORMAT,
        "fingerprint": fingerprint,
        "iteration": state.iterations,
        "versions": versions,
    }
    path = files.reload(state.iterations)
    with atomic(path, durable=True) as file:
        file.write(_head(header, "0" * 64))  # its place, until the checksum is known
        content = _Summed(file, _begun(header))
        dump(state, content)
        file.seek(0)
        file.write(_head(header, content.sum.hexdigest()))
    there = files.reloads()
    keep_only(files, there[there.index(path) :][:KEPT])
    return path


def dump(state: State, file: Any) -> None:
    """Writes the payload of a reload file."""
    pickler = pickle.Pickler(file, protocol=5)
    pickler.dispatch_table = {**copyreg.dispatch_table, **state.algorithm.reducers}
    pickler.dump(state)


def keep_only(files: StateDir, kept: list[Path]) -> None:
    """Removes all reload files but these."""
    for path in files.reloads():
        if path not in kept:
            path.unlink()


def newest(
    files: StateDir,
    fingerprint: str | None,
    versions: dict[str, str],
    *,
    usable: Callable[[dict[str, Any]], bool] = lambda header: True,
    allow_version_change: bool = False,
    inherited: Inherited | None = None,
) -> State | None:
    """Reads the newest reload file that is whole.

    Args:
        files: The run's `state/`.
        fingerprint: The experiment's fingerprint; None: whatever it is.
        versions: The versions of now.
        usable: Says of a header whether the run can go on from there.
        allow_version_change: Go on although decisive versions differ.
        inherited: What a reload file of the run's donor looks like.

    Returns:
        The state, or None where there is no reload file that is whole.

    Raises:
        BadInput: A reload file is of another experiment, or of other versions.
    """
    for path in files.reloads():
        try:
            header, start = _read(path)
        except (OSError, ValueError) as error:
            log.warning("%s is passed over: %s", path, error)
            continue
        is_donors = inherited is not None and inherited.is_of(header)
        if fingerprint is not None and header["fingerprint"] != fingerprint and not is_donors:
            raise BadInput(
                f"{path} is a reload file of another experiment (its fingerprint is "
                f"{header['fingerprint'][:10]}, this run's {fingerprint[:10]}): remove it, or "
                "start the run in another folder"
            )
        _check_versions(path, header["versions"], versions, allow_version_change)
        if not usable(header):
            log.warning("%s is passed over: metrics.csv ends before its iteration", path)
            continue
        with path.open("rb") as file:
            file.seek(start)
            state = load(file)
        if not is_donors or state.is_between_iterations:
            return state
        log.warning("%s is passed over: its donor was in the middle of the next iteration", path)
    if files.reloads():
        log.warning("no reload file can be used: the run is computed again from its start")
    return None


class _Summed:
    """A file that is written, and the checksum of what is: a payload may be as big as memory is."""

    def __init__(self, file: IO[bytes], begun: "hashlib._Hash") -> None:
        self.sum, self._file = begun, file

    def write(self, data: Any) -> int:
        self.sum.update(data)
        return self._file.write(data)


def _head(header: dict[str, Any], checksum: str) -> bytes:
    return _MAGIC + json.dumps({**header, "sha256": checksum}).encode() + b"\n"


def _read(path: Path) -> tuple[dict[str, Any], int]:
    """Header of a reload file and where its payload begins; ValueError if it is torn or corrupt."""
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ValueError("it is torn or corrupt (no header)")
        header = json.loads(file.readline())
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise ValueError("it is torn, corrupt or of another format")
        start, checksum = file.tell(), header.pop("sha256", None)
        if checksum != hashlib.file_digest(file, partial(_begun, header)).hexdigest():
            raise ValueError("it is torn or corrupt (its checksum is wrong)")
        return header, start


def _begun(header: dict[str, Any]) -> "hashlib._Hash":
    """The checksum of all that is in the file but itself, before the payload."""
    return hashlib.sha256(json.dumps(header, sort_keys=True).encode())


def _check_versions(path: Path, then: dict[str, str], now: dict[str, str], allowed: bool) -> None:
    changed = [
        f"{name} {then.get(name)} -> {now.get(name)}"
        for name in sorted(then.keys() | now.keys())
        if then.get(name) != now.get(name)
    ]
    if changed and not allowed:
        raise BadInput(
            f"{path} was made under other versions ({', '.join(changed)}): go on with the old "
            "ones, or give --allow-version-change and accept that the result is of neither"
        )
    if changed:
        log.warning("goes on under other versions: %s", ", ".join(changed))
