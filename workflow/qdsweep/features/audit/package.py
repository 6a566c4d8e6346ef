"""A package of `qdsweep export`: its files are checked, and copied into an empty folder.

It may come from anybody. So nothing is written outside of that folder, and nothing is run or read
as anything but bytes. Checksums show that a package is whole, not who made it.
"""

import hashlib
import os
import re
import shutil
import stat
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from qdsweep.errors import BadInput
from qdsweep.text import listed, plural, quoted, visible

SUMS = "SHA256SUMS"
_SUM = re.compile(r"([0-9a-f]{64})  (.+)")
_FRESH = "get the package again"
# What the zip of any sweep stays far below. Arrays do not shrink, and tables to a fiftieth at most.
_RATIO, _SMALL = 200, 10**8
_MOST_FILES = 2_000_000
_LONGEST_PART, _LONGEST = 255, 1000  # of a name [bytes]
# What stays free on the disk [bytes].
_RESERVE = 10**8
_BLOCK = 1 << 20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

Open = Callable[[], IO[bytes]]


def unpack_package(
    package: Path, folder: Path, show: Callable[[str], None] = lambda line: None
) -> list[str]:
    """Copies the files of a package into a folder, and compares each with its checksum.

    Args:
        package: The zip, or a folder that it was unpacked into. Work in it may have left other
            files there, which are not copied.
        folder: The folder, which is made.
        show: Prints a line on such files.

    Returns:
        The names of the copied files.

    Raises:
        BadInput: It is no package, it is damaged or changed, or a name or size in it is hostile.
    """
    with _opened(package) as files:
        _check_names(package, files)
        if SUMS not in files:
            raise BadInput(
                f"{package}: it has no {SUMS}; give the zip of `qdsweep export`, or the folder "
                "with this file"
            )
        folder.mkdir(mode=0o700)
        free = max(0, shutil.disk_usage(folder).free - _RESERVE)
        room = _Room(package, free if package.is_dir() else min(free, _largest(package)))
        room.copy(SUMS, files[SUMS], folder)
        sums = _read_sums(package, folder / SUMS)
        others = sorted({*files} - {*sums, SUMS}) if package.is_dir() else []
        if others:
            show(
                f"{package}: {plural(len(others), 'file')} not listed in {SUMS} ignored: "
                f"{visible(listed(others, most=3))}"
            )
        for name in sorted(({*files} ^ {*sums, SUMS}) - {*others}):
            problem = "is missing" if name in sums else f"is not listed in {SUMS}"
            raise BadInput(f"{package}: {quoted(name)} {problem}: {_FRESH}")
        for name, digest in sums.items():
            if room.copy(name, files[name], folder) != digest:
                raise BadInput(
                    f"{package}: {quoted(name)} has changed: its SHA-256 is not that of {SUMS}: "
                    f"{_FRESH}"
                )
    return [SUMS, *sums]


class _Room:
    """The bytes that the files of a package may still take, counted while they are written."""

    def __init__(self, package: Path, left: int) -> None:
        self._package, self._left, self._most = package, left, left

    def copy(self, name: str, opener: Open, folder: Path) -> str:
        """Copies a file, and returns its SHA-256 [hex]."""
        path, digest = folder / name, hashlib.sha256()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with path.open("xb") as target:
            for block in _blocks(self._package, name, opener):
                self._left -= len(block)
                if self._left < 0:
                    raise BadInput(
                        f"{self._package}: its files are larger than {self._most:,} bytes, which "
                        f"is {_RATIO} times the zip, or what the disk of {folder.parent} has left "
                        "(TMPDIR names another folder)"
                    )
                digest.update(block)
                target.write(block)
        return digest.hexdigest()


def _blocks(package: Path, name: str, opener: Open) -> Iterator[bytes]:
    """Yields the content of a file. zip and zlib raise errors of many kinds."""
    try:
        with opener() as source:
            while block := source.read(_BLOCK):
                yield block
    except GeneratorExit:
        raise
    except Exception as error:
        raise _damaged(package, f"{quoted(name)}: {error}") from None


def _damaged(package: Path, why: object) -> BadInput:
    return BadInput(f"{package} is damaged ({why}): {_FRESH}")


def _largest(package: Path) -> int:
    return max(_RATIO * package.stat().st_size, _SMALL)


@contextmanager
def _opened(package: Path) -> Iterator[dict[str, Open]]:
    """Yields the files of a package: name -> how it is opened."""
    if package.is_dir():
        yield dict(_in_folder(package))
    elif package.is_file():
        try:
            archive = zipfile.ZipFile(package)
        except Exception as error:
            raise _damaged(package, error) from None
        with archive:
            yield _in_zip(package, archive)
    else:
        raise BadInput(
            f"{package}: there is no such file or folder; give the zip of `qdsweep export`, or the "
            "folder that it was unpacked into"
        )


def _in_folder(package: Path) -> Iterator[tuple[str, Open]]:
    def fail(error: OSError) -> None:
        raise error

    for place, folders, files in os.walk(package, onerror=fail):
        for each in (*folders, *files):
            path = Path(place, each)
            kind, name = path.lstat().st_mode, str(path.relative_to(package))
            if not (stat.S_ISDIR(kind) or stat.S_ISREG(kind)):
                raise _hostile(package, name, "is a link or no regular file")
            if stat.S_ISREG(kind):
                yield name, lambda path=path: _open(path)  # type: ignore[misc]


def _open(path: Path) -> IO[bytes]:
    """Opens a file, and no link that has replaced it."""
    return open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb")  # noqa: PTH123


def _in_zip(package: Path, archive: zipfile.ZipFile) -> dict[str, Open]:
    files: dict[str, Open] = {}
    entries = archive.infolist()
    if len(entries) > _MOST_FILES:
        raise BadInput(f"{package}: it has more than {_MOST_FILES:,} files")
    if sum(entry.file_size for entry in entries) > (most := _largest(package)):
        raise BadInput(f"{package}: its files are larger than {most:,} bytes")
    tops = {entry.filename.partition("/")[0] for entry in entries}
    for entry in entries:
        name, kind = entry.orig_filename, stat.S_IFMT(entry.external_attr >> 16)
        _, _, inner = name.partition("/")
        if len(tops) > 1 or not inner.strip("/"):
            if entry.is_dir() and len(tops) == 1:
                _check_name(package, name.removesuffix("/"))
                continue
            raise _hostile(package, name, "is not in the one folder that a package has")
        if kind not in (0, stat.S_IFDIR if entry.is_dir() else stat.S_IFREG):
            raise _hostile(package, name, "is a link or no regular file")
        if entry.flag_bits & 1 or entry.compress_type not in _METHODS:
            raise _hostile(package, name, "is encrypted, or compressed in an unusual way")
        _check_name(package, name.removesuffix("/"))
        if entry.is_dir():
            continue
        if inner in files:
            raise _hostile(package, name, "is there twice")
        files[inner] = lambda entry=entry: archive.open(entry)  # type: ignore[misc]
    return files


def _check_names(package: Path, files: Iterable[str]) -> None:
    """Refuses names that another file system takes for one, and files that are also folders."""
    seen: dict[str, tuple[str, bool]] = {}
    for name in files:
        _check_name(package, name)
        parts = name.split("/")
        for length in range(1, len(parts) + 1):
            part = "/".join(parts[:length]), length == len(parts)
            key = unicodedata.normalize("NFC", unicodedata.normalize("NFC", part[0]).casefold())
            if seen.setdefault(key, part) != part:
                problem = f"is the same name as {quoted(seen[key][0])} on some systems"
                raise _hostile(package, name, problem)


def _check_name(package: Path, name: str) -> None:
    """Refuses a name that leads elsewhere, or that not every system can have."""
    parts = name.split("/")
    if {"", ".", ".."} & {*parts}:
        raise _hostile(package, name, "may lead out of its folder")
    if any(unicodedata.category(sign) in ("Cc", "Cs") or sign == "\\" for sign in name):
        raise _hostile(package, name, "has a character that no name can have")
    if len(name.encode()) > _LONGEST or max(len(part.encode()) for part in parts) > _LONGEST_PART:
        raise _hostile(package, name, "is too long")


def _hostile(package: Path, name: str, problem: str) -> BadInput:
    return BadInput(
        f"{package}: it is not unpacked, as the name {quoted(name)} {problem}; `qdsweep export` "
        "writes no such package"
    )


def _read_sums(package: Path, path: Path) -> Mapping[str, str]:
    """Reads the checksums of all files: name -> SHA-256."""
    try:
        *lines, end = path.read_bytes().decode().split("\n")
    except UnicodeDecodeError as error:
        raise _damaged(package, f"{SUMS}: {error}") from None
    sums: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        match = _SUM.fullmatch(line)
        if match is None or match[2] == SUMS or match[2] in sums:
            raise _damaged(package, f"{SUMS}, line {number}: {quoted(line)}")
        sums[match[2]] = match[1]
    if end or not sums:
        raise _damaged(package, f"{SUMS}: its last line is cut")
    return sums
