"""Checksums of finished files, in the format of coreutils: `sha256sum --check` reads them, too.

A bit that flips in a table of numbers gives another number, without any error. The sums of a run
are in its `state/SHA256SUMS`, and those of its last snapshot in `state/partial/SHA256SUMS`.
`state/STEM.sha256` has those of a re-evaluation, and `state/STAGE.sha256` of a sweep those of a
stage. Those of centroids are next to them. Files of earlier releases have none: they are trusted.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from qdsweep.files import AGAIN, ANEW, damaged, read_json, write_text


def sums_of(folder: Path, files: Iterable[Path]) -> str:
    """Returns the lines of checksums.

    Args:
        folder: The folder of relative names.
        files: Files below it; those that do not exist are left out.
    """
    there = (path for path in files if path.is_file())
    return "".join(f"{_digest(path)}  {path.relative_to(folder)}\n" for path in there)


def damaged_files(sums: Path, folder: Path) -> list[Path]:
    """Returns the files that are not as they were when their checksums were written.

    A file that is gone is not among them: its reader will report it.
    """
    there = ((folder / name, digest) for name, digest in _read(sums).items())
    return [path for path, digest in there if path.is_file() and _digest(path) != digest]


def withdraw(sums: Path) -> None:
    """Marks the files of some checksums as unfinished, such as those of a stage that begins."""
    if sums.parent.exists():
        write_text(sums, "")


def is_withdrawn(sums: Path) -> bool:
    """Returns whether the files of some checksums are unfinished: some may be newer than others."""
    return sums.exists() and sums.stat().st_size == 0


def require_as_written(path: Path, remedy: str = ANEW, sums: Path | None = None) -> None:
    """Compares a file with its checksum, where it has one.

    An .npz file needs none: it has its own inside.

    Args:
        path: The file.
        remedy: What to do where it has changed.
        sums: The file of its checksum, where that is not one of those above.

    Raises:
        BadInput: It has changed since its checksum was written.
    """
    is_inside = path.parent.name in ("state", "partial")
    state = path.parent if is_inside else path.parent / "state"
    for place in (sums,) if sums else (state / "SHA256SUMS", state / f"{path.stem}.sha256"):
        expected = _read(place).get(path.name)
        if expected is not None and path.is_file():
            if _digest(path) != expected:
                raise damaged(path, ValueError("it has changed since it was written"), remedy)
            return


def checksum(data: Mapping[str, Any]) -> str:
    """Returns the checksum of JSON for a key `sha256` in its own file."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def read_checked(path: Path, remedy: str = AGAIN, cure: str = ANEW) -> dict[str, Any]:
    """Reads a JSON object that may have a checksum; see `read_json`."""
    require_as_written(path, cure)
    return read_json(path, remedy, cure)


def _read(sums: Path) -> dict[str, str]:
    try:
        text = sums.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (line.split("  ", 1) for line in text.splitlines())
    return {pair[1]: pair[0] for pair in pairs if len(pair) == 2}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
