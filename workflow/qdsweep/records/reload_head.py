"""The head of a reload file: its format, its checksum, and the digest of the user who wrote it.

A start reads it to find the runs whose reload files it would refuse. It imports no library.
"""

import contextlib
import hmac
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from qdsweep.errors import BadInput, StorageError, owner_of
from qdsweep.records.paths import StateDir

FORMAT = 3
_FORMATS = (2, FORMAT)  # format 2 has no digest of its owner
MAGIC = b"qdsweep reload file\n"


def read_head(file: IO[bytes]) -> tuple[dict[str, Any], str, str]:
    """Reads the header, the checksum and the digest.

    Raises:
        ValueError: It is truncated, corrupt or of another format.
    """
    if file.read(len(MAGIC)) != MAGIC:
        raise ValueError("it is truncated or corrupt (no header)")
    header = json.loads(file.readline())
    if not isinstance(header, dict) or header.get("format") not in _FORMATS:
        raise ValueError("it is truncated, corrupt or of another format")
    if not header.keys() >= {"fingerprint", "iteration", "versions"}:
        raise ValueError("it is corrupt (its header lacks a key)")
    return header, str(header.pop("sha256", None)), str(header.pop("hmac", None) or "")


def is_signed(checksum: str, digest: str) -> bool:
    """Returns whether a digest is the user's own of a checksum."""
    from qdsweep.host.key import own_digest  # most starts find no reload file

    own = own_digest(checksum) if digest else None
    return own is not None and hmac.compare_digest(own.encode(), digest.encode())


def remedy_for(path: Path) -> str:
    """Returns what to do with a reload file of another user."""
    return (
        "if you trust its author, adopt it with `qdsweep adopt "
        f"{shlex.quote(str(path.parent.parent))}`; to compute the run from its start, remove it"
    )


def of_others(path: Path) -> str:
    """Returns why a reload file is refused that another user may have written."""
    remedy = remedy_for(path)
    return (
        f"{path} is refused: it belongs to {owner_of(path)}. Another user owns it or can write it "
        "(or its folder), and it lacks your digest. Loading a reload file executes the code in it. "
        f"{remedy[0].upper()}{remedy[1:]}"
    )


def require_adopted(files: StateDir) -> None:
    """Refuses the newest reload file of a run before its job starts, if the run would refuse it.

    Only its head is read, so a damaged file passes.

    Args:
        files: The run's `state/`.

    Raises:
        BadInput: Another user may have written it, or does not let this user read it.
    """
    for path in files.reloads()[:1]:
        from qdsweep.host.permissions import is_kept_alone  # most runs have none

        with refusing_unreadable(path), contextlib.suppress(ValueError), path.open("rb") as file:
            if is_kept_alone(file.fileno(), path.parent):
                return
            _, checksum, digest = read_head(file)
            if not is_signed(checksum, digest):
                raise BadInput(of_others(path))


@contextlib.contextmanager
def refusing_unreadable(path: Path) -> Iterator[None]:
    """Refuses a file that this user may not read. It is not damaged, so no run may skip it."""
    try:
        yield
    except PermissionError as error:
        raise BadInput(str(StorageError(error, path))) from None
