"""The user's own key, which proves that a reload file is the user's own.

It also finds out whether another user can have written a file.
"""

import errno
import functools
import grp
import hashlib
import hmac
import logging
import os
import pwd
import secrets
import stat
import struct
from pathlib import Path

from qdsweep.files import write_private
from qdsweep.host import process
from qdsweep.host.lock import Lock

log = logging.getLogger(__name__)

_LENGTH = 64  # hexadecimal digits

# A POSIX access list as the kernel has it (linux/posix_acl_xattr.h): a version, then tag,
# permissions and id of each entry.
_ACCESS_LIST = "system.posix_acl_access"
_WRITE = 0o2

_HEAD, _ENTRY = struct.Struct("<I"), struct.Struct("<HHI")
_USER, _OWN_GROUP, _GROUP = 0x02, 0x04, 0x08  # the tags of those who may be others


def key_file() -> Path:
    """Returns the path of the key, which may not exist yet; in an image, the host's path."""
    key = process.host_facts().get("key")
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser())
    return Path(key) if key else folder / "qdsweep/key"


def own_digest(text: str) -> str | None:
    """Returns the keyed digest of a text, which no other user can make.

    The key is made at its first use.

    Returns:
        HMAC-SHA256 [hex]; None where there is no key and none can be made.
    """
    key = _key(key_file())
    return key and hmac.digest(key.encode(), text.encode(), hashlib.sha256).hex()


@functools.cache  # so a run does not notice when the home folder vanishes
def _key(file: Path) -> str | None:
    try:
        if not file.exists():
            _make(file)
        about, key = file.stat(), file.read_text(encoding="utf-8").strip()
    except (OSError, ValueError, RuntimeError) as error:
        log.warning("%s: the key cannot be made or read (%s)", file, error)
        return None
    if about.st_uid != os.geteuid() or about.st_mode & 0o077:
        log.warning("%s is not used: others may read it. Remove it: a new key is then made", file)
        return None
    if len(key) != _LENGTH:
        log.warning("%s is not used: it is damaged. Remove it: a new key is then made", file)
        return None
    return key


def _make(file: Path) -> None:
    """Makes the key atomically; of two processes, one makes it for both."""
    own = file.with_name(f"{file.name}-{secrets.token_hex(8)}")
    try:
        write_private(own, secrets.token_hex(_LENGTH // 2))
        os.link(own, file)  # unlike a rename it never replaces that of another process
    except FileExistsError:
        pass
    except OSError:  # hard links are not supported, or nothing can be written
        if not own.exists():
            raise
        with Lock(file.with_name(f"{file.name}.lock")) as lock:
            if not file.exists():
                own.rename(file)
            lock.path.unlink()  # a process that waits for it finds the key
    finally:
        own.unlink(missing_ok=True)


def is_kept_alone(descriptor: int, folder: Path) -> bool:
    """Returns whether only this user can write an open file, and could put it into its folder.

    Args:
        descriptor: The file.
        folder: Where it is.
    """
    return not any(_others_write(place) for place in (descriptor, folder))


def _others_write(place: int | Path) -> bool:
    """Returns whether another user owns or can write an open file or a folder."""
    about = os.stat(place)  # noqa: PTH116 - of an open file, too
    if about.st_uid != os.geteuid() or about.st_mode & stat.S_IWOTH:
        return True
    if not about.st_mode & stat.S_IWGRP:  # with an access list, this bit is of its mask
        return False
    for tag, permissions, number in _access_list(place) or [(_OWN_GROUP, _WRITE, 0)]:
        if permissions & _WRITE:
            group = about.st_gid if tag == _OWN_GROUP else number
            if tag == _USER and number != os.geteuid():
                return True
            if tag in (_OWN_GROUP, _GROUP) and not _is_alone_in(group):
                return True
    return False


def _access_list(place: int | Path) -> list[tuple[int, int, int]]:
    """Returns tag, permissions and id of each entry of an access list; none where there is none."""
    try:
        content = os.getxattr(place, _ACCESS_LIST)
    except OSError as error:
        if error.errno in (errno.ENODATA, errno.EOPNOTSUPP):
            return []
        raise
    return list(_ENTRY.iter_unpack(content[_HEAD.size :]))


def _is_alone_in(group: int) -> bool:
    """Returns whether a group is private to the user, as on many systems with the umask 002."""
    try:
        user, about = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    is_private = (user.pw_gid, user.pw_name) == (about.gr_gid, about.gr_name)
    return is_private and not set(about.gr_mem) - {user.pw_name}
