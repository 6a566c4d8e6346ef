"""Whether somebody else can have written a file."""

import grp
import os
import pwd
import stat
from pathlib import Path

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def is_kept_alone(descriptor: int, folder: Path) -> bool:
    """Returns whether this user alone can write an open file, and put it where it is.

    Args:
        descriptor: The file.
        folder: Where it is.
    """
    places = os.fstat(descriptor), folder.stat()
    return all(about.st_uid == os.geteuid() and not _others_write(about) for about in places)


def _others_write(about: os.stat_result) -> bool:
    if about.st_mode & stat.S_IWOTH:
        return True
    return bool(about.st_mode & stat.S_IWGRP) and not _is_alone_in(about.st_gid)


def _is_alone_in(group: int) -> bool:
    """Whether a group is the user's private one, as many systems have it, with the umask 002."""
    try:
        user, about = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    is_private = (user.pw_gid, user.pw_name) == (about.gr_gid, about.gr_name)
    return is_private and not set(about.gr_mem) - {user.pw_name}
