"""Files: read with clear errors, and written whole or not at all."""

import ctypes
import errno
import json
import os
import secrets
import shutil
import socket
import time
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pydantic import ValidationError

from qdsweep.errors import BadInput

if TYPE_CHECKING:
    import pandas as pd

# Remedies for a damaged and for a missing file of qdsweep.
ANEW = "remove it, and start snakemake again, which makes it again"
AGAIN = "Run `snakemake` again to make it."

Signature = tuple[int, int, int] | None

TEMPORARY = ".*.tmp"
"""The names of `temporary_name`, and those of earlier releases, as a pattern."""
DAY = 86400.0
"""From this age on, no process uses a temporary file [s]."""
_NOW = -100  # AT_FDCWD: paths are relative to the working directory
_EXCHANGE = 2  # RENAME_EXCHANGE
ASIDE = ".aside.tmp"
"""The end of the name that `folder` of `exchange_in_steps` has for a moment."""


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Names the file in errors of write, fsync and close, which name none."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


def rename(error: OSError, temporary: Path, path: Path) -> None:
    """Gives a file its later name in an error; that of a copy names the second file."""
    name = str(error.filename2 or error.filename or temporary)
    error.filename = name.replace(str(temporary), str(path), 1)


def temporary_name(path: Path) -> Path:
    """Returns a name next to a path that no other process has, on this host or another one.

    Hosts and containers of one folder may have equal names and process numbers. So the name is
    random, too, and whatever gets it is created only if it does not exist (O_EXCL).
    """
    owner = f"{socket.gethostname().partition('.')[0][:20]}-{os.getpid()}-{secrets.token_hex(6)}"
    return path.with_name(f".{path.name[:100]}.{owner}.tmp")


def abandoned(folder: Path, pattern: str = TEMPORARY) -> Iterator[Path]:
    """Yields what a kill has left in a folder under temporary names, on any host, a day ago.

    The age is measured by the clock of the file system, as this host's may differ from it.

    Args:
        folder: The folder, which may be missing.
        pattern: The names, below the folder.
    """
    now = None
    for path in folder.glob(pattern):
        with suppress(OSError):  # it is gone, or no file of this user can be written there
            now = now or time_of(path.parent)
            stat = path.lstat()
            is_link = stat.st_nlink > 1 and path.is_file()  # its own time is that of another name
            changed = max(stat.st_mtime, stat.st_ctime) if is_link else stat.st_mtime
            if now - changed >= DAY:
                yield path


def time_of(folder: Path) -> float:
    """Returns the time by the clock of a folder's file system [s since the epoch].

    Raises:
        OSError: This user cannot write the folder.
    """
    probe = temporary_name(folder / "time")
    try:
        probe.touch(exist_ok=False)
        now = probe.stat().st_mtime
        probe.unlink()
    except OSError as error:
        error.filename = str(folder)
        raise
    return now


def try_to_remove(paths: Iterable[Path]) -> None:
    """Removes files and folders that may be gone, as far as this user may."""
    for path in paths:
        with suppress(OSError):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


@contextmanager
def atomic(
    path: Path, how: str = "wb", *, durable: bool = False, mode: int = 0o666
) -> Iterator[IO[Any]]:
    """Opens a temporary file next to `path` that replaces it when the block succeeds.

    Args:
        path: The file to make or to replace.
        how: "wb", or "w" for UTF-8.
        durable: Also wait until the disk has it (fsync of the file and of its folder).
        mode: The most that the file permits, from the start. The umask or an access list of the
            folder may permit less.
    """
    with _replacing(path) as temporary:
        temporary.touch(mode, exist_ok=False)
        with temporary.open(how, encoding=None if "b" in how else "utf-8") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
    if durable:
        sync(path.parent)


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Yields a temporary name, which replaces `path` when the block succeeds."""
    temporary = temporary_name(path)
    try:
        yield temporary
        temporary.replace(path)
    except BaseException as error:
        if not isinstance(error, FileExistsError):  # else another process has this name
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            rename(error, temporary, path)
        raise


class Appended:
    """A file that grows.

    Args:
        path: The file.
        mode: "ab", or "a" for text.
    """

    def __init__(self, path: Path, mode: str) -> None:
        self._path = path
        self._file: IO[Any] = path.open(mode)

    def write(self, content: str | bytes) -> None:
        """Appends; the content may stay in memory until `flush`."""
        with naming(self._path):
            self._file.write(content)

    def flush(self, *, durable: bool = False) -> None:
        """Passes all to the system, and on demand waits until the disk has it."""
        with naming(self._path):
            self._file.flush()
            if durable:
                os.fsync(self._file.fileno())

    def close(self) -> None:
        """Writes what is in memory and closes the file."""
        with naming(self._path):
            self._file.close()


def write_text(path: Path, text: str) -> None:
    """Writes a text file whole or not at all."""
    with atomic(path, "w") as file:
        file.write(text)


def read_folder(folder: Path) -> dict[str, bytes]:
    """Returns the files below a folder, but for those of writes that a kill has cut off.

    Returns:
        Path in the folder -> content.
    """
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in paths
        if not path.match(TEMPORARY)
    }


def write_private(path: Path, text: str) -> None:
    """Writes a text file that only its owner can read, in a folder only for its owner."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    with atomic(path, "w", mode=0o600) as file:
        file.write(text)


def write_json(path: Path, data: Any) -> None:
    """Writes JSON whole or not at all."""
    write_text(path, json.dumps(data, indent=1) + "\n")


def signature(path: str | Path) -> Signature:
    """Returns time, size and inode, by which a change is seen; None if there is no file."""
    try:
        stat = os.stat(path)  # noqa: PTH116 - called by the thousand
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def require(path: Path, remedy: str) -> Path:
    """Returns `path` if it exists.

    Raises:
        BadInput: It does not exist; the message names it and the remedy.
    """
    if not path.exists():
        await_listed(path.parent)
        if not path.exists():
            raise BadInput(f"{path} does not exist. {remedy}")
    return path


def read_json(path: Path, remedy: str = AGAIN, cure: str = ANEW) -> dict[str, Any]:
    """Reads a JSON object.

    Args:
        path: The file.
        remedy: What to do where there is none.
        cure: What to do where it is damaged.

    Raises:
        BadInput: The file is missing or is not JSON.
    """
    require(path, remedy)
    try:
        return _parse(path)
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise damaged(path, error, cure) from error


def read_json_if_whole(path: Path) -> dict[str, Any]:
    """Reads a JSON object that no result depends on; empty where it is missing or damaged."""
    try:
        return _parse(path)
    except (OSError, ValueError, TypeError, RecursionError):
        return {}


def _parse(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_bytes().decode()))


def last_line(path: Path) -> str:
    """Returns the last line of a log that is not blank."""
    return next((line for line in reversed(last_lines(path)) if line.strip()), "")


def last_lines(path: Path, size: int = 8_192) -> list[str]:
    """Returns the lines within the last bytes of a log, the first one perhaps cut at its start.

    Args:
        path: The log; no lines where it is missing.
        size: How much of it is read [bytes].
    """
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - size))
            return file.read().decode(errors="replace").splitlines()
    except OSError:
        return []


def read_csv(path: Path, remedy: str, **options: Any) -> "pd.DataFrame":
    """Reads a table; what is empty is missing, and a text such as "null" stays text.

    Args:
        path: The file.
        remedy: What to do where there is none.
        **options: As `pandas.read_csv` has them.

    Raises:
        BadInput: The file is missing or damaged.
    """
    import pandas as pd

    require(path, remedy)
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            if file.read() != b"\n":
                raise ValueError("its last line is truncated")
        table = pd.read_csv(path, **{"keep_default_na": False, "na_values": [""], **options})
        if len(table.columns) < 2:
            raise ValueError("it is not a table")
        return table
    except (OSError, ValueError) as error:
        raise damaged(path, error) from error


def write_csv(table: "pd.DataFrame", path: Path) -> None:
    """Writes a table whole or not at all."""
    with atomic(path, "w") as file:
        table.to_csv(file, index=False, lineterminator="\n")


def read_arrays(path: Path, *names: str, remedy: str = ANEW) -> dict[str, Any]:
    """Reads arrays of an .npz file.

    Args:
        path: The file.
        names: Which; none: all.
        remedy: What to do where it is damaged.

    Raises:
        BadInput: It is missing or damaged, or holds pickles.
    """
    import numpy as np

    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("it is missing" if not path.exists() else "it is truncated")
        with np.load(path, allow_pickle=False) as file:
            _require_members(path, len(file.files))
            return {name: _read_member(file.zip, name) for name in names or file.files}
    except Exception as error:  # zip, zlib and numpy raise errors of many kinds
        raise damaged(path, error, remedy) from error


def _require_members(path: Path, count: int) -> None:
    """Compares the number of arrays of an .npz file with the one at its end.

    zip has no checksum of its list of members. A wrong length in it hides those that follow.
    """
    with path.open("rb") as file:
        file.seek(-22, os.SEEK_END)
        end = file.read()
    if end.startswith(b"PK\5\6") and int.from_bytes(end[10:12], "little") != count:
        raise ValueError("it has lost an array")


def _read_member(archive: zipfile.ZipFile, name: str) -> Any:
    """Reads an array to the end of its member, where zip compares the checksum."""
    import numpy as np

    stored = f"{name}.npy"
    with archive.open(stored if stored in archive.namelist() else name) as member:
        array = np.lib.format.read_array(member, allow_pickle=False)
        if member.read(1):
            raise ValueError(f"{name} has more numbers than its shape")
    return array


def damaged(path: Path, error: Exception, remedy: str = ANEW) -> BadInput:
    """Returns the error for a damaged file."""
    reason: object = f"it has no {error}" if isinstance(error, KeyError) else error
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return BadInput(f"{path} is damaged ({reason}): {remedy}")


def sync(path: Path) -> None:
    """Waits until the disk has the content of a file, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with naming(path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def await_listed(folder: Path, seconds: float = 5.0) -> None:
    """Waits until a folder is listed as it is, and what it lists can be opened.

    Files of another node appear with a delay. A node may keep an old listing until it changes the
    folder itself (NFS).

    Args:
        folder: The folder, which may be missing.
        seconds: How long to wait at most.
    """
    with suppress(OSError):  # a folder that this user cannot write
        time_of(folder)
    deadline = time.monotonic() + seconds
    for path in folder.glob("*"):
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.1)


def copy(source: Path, target: Path) -> None:
    """Copies a file to a new name. Of a reload file, only its owner can write the copy."""
    target.touch(0o644 if source.suffix == ".pkl" else 0o666, exist_ok=False)
    shutil.copyfile(source, target)


def link(source: Path, target: Path) -> None:
    """Makes `target` a hard link to `source`, replacing an earlier file.

    On a file system without hard links the file is copied.
    """
    with _replacing(target) as temporary:
        try:
            os.link(source, temporary)
        except OSError:
            copy(source, temporary)
    temporary.unlink(missing_ok=True)  # rename() does nothing between two names of one file


def exchange(folder: Path, other: Path) -> None:
    """Gives two folders each other's names, at once on Linux file systems that support it.

    Elsewhere it takes three steps, and a kill between them leaves `folder` under another name.
    """
    system = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(folder), os.fsencode(other)
    if hasattr(system, "renameat2"):
        if system.renameat2(_NOW, names[0], _NOW, names[1], _EXCHANGE) == 0:
            return
        number = ctypes.get_errno()
        if number not in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
            raise OSError(number, os.strerror(number), str(folder))
    exchange_in_steps(folder, other)


def exchange_in_steps(folder: Path, other: Path) -> None:
    """Gives two folders each other's names on any file system."""
    aside = other.with_name(f"{other.name}{ASIDE}")
    os.utime(folder)  # `abandoned` must not take it for an old one
    folder.rename(aside)
    try:
        other.rename(folder)
    except OSError:
        aside.rename(folder)
        raise
    aside.rename(other)
