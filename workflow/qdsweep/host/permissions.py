"""The permissions of a file and its folder: whether another user can have written it."""

import errno
import grp
import os
import pwd
import stat
import struct
from pathlib import Path

# A POSIX access list as the kernel has it (linux/posix_acl_xattr.h): a version, then tag,
# permissions and id of each entry.
_ACCESS_LIST = "system.posix_acl_access"
_WRITE = 0o2
_HEAD, _ENTRY = struct.Struct("<I"), struct.Struct("<HHI")
_USER, _OWN_GROUP, _GROUP = 0x02, 0x04, 0x08  # the tags of those who may be others


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
