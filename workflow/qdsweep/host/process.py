"""Processes of this machine: their parents, users, memory, programs and endings.

An image has no Slurm, so facts about the host are passed to the processes in it.
"""

import contextlib
import ctypes
import functools
import json
import os
import shutil
import signal
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any

# The variables that name a user, in the order in which Python's getpass reads them.
_NAMES = ("LOGNAME", "USER", "LNAME", "USERNAME")
HOST_VARIABLE = "QDSWEEP_HOST"
# MPI starts processes of the mpi engine with this variable: the number of ranks that must exist.
RANKS = "QDSWEEP_RANKS"


def die_with_parent(number: signal.Signals, parent: int | None = None) -> None:
    """Makes this process get a signal when its parent ends (only on Linux).

    Args:
        number: The signal.
        parent: The parent's pid, for a process that it may have left before this call.
    """
    parent = parent or os.getppid()
    try:
        ctypes.CDLL(None).prctl(1, number)  # PR_SET_PDEATHSIG
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:  # the parent ended in between
        os._exit(1)


def complete_user() -> None:
    """Sets the variables that libraries need where this user has no name or no writable home.

    A container may run as a user without an entry in passwd: Snakemake asks for a name. numba keeps
    compiled functions in site-packages or below the home, and fails where it can write neither.
    """
    if not any(os.environ.get(name) for name in _NAMES) and _entry() is None:
        os.environ["LOGNAME"] = f"uid{os.getuid()}"
    if not os.environ.get("HOME") and _entry() is None:
        os.environ["HOME"] = "/"  # as Docker does
    caches = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    if not _can_write(Path(caches)):
        folder = _own_temporary_folder()
        for variable in ("NUMBA_CACHE_DIR", "MPLCONFIGDIR"):
            os.environ.setdefault(variable, folder)


def _entry() -> object | None:
    import pwd

    try:
        return pwd.getpwuid(os.getuid())
    except KeyError:
        return None


def _can_write(folder: Path) -> bool:
    """Returns whether this user can write into a folder, or make it."""
    there = next(each for each in (folder, *folder.parents) if os.path.exists(each))  # noqa: PTH110
    return there.is_dir() and os.access(there, os.W_OK)


def _own_temporary_folder() -> str:
    """Returns a folder for caches that no other user can have written: numba's are pickles."""
    folder = f"{tempfile.gettempdir()}/qdsweep-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, mode=0o700)  # noqa: PTH102 - as its name is a text
    about = os.lstat(folder)
    is_own = stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid()
    return folder if is_own and not about.st_mode & 0o077 else tempfile.mkdtemp(prefix="qdsweep-")


def return_memory(size: int) -> None:
    """Makes malloc return blocks above a size to the system when they are freed (only glibc).

    Otherwise glibc keeps those of a thread, once such blocks were freed before.

    Args:
        size: The size [bytes].
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(-3, size)  # M_MMAP_THRESHOLD


def trim_memory() -> None:
    """Returns freed memory to the system (only glibc).

    Otherwise the process grows: gaps between blocks in use do not fit the next arrays.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def which(program: str) -> str | None:
    """Returns where a program is: next to this Python, or else on the PATH; None if nowhere."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return shutil.which(program, path=path)


def ending(code: int) -> str:
    """Returns how a process has ended, such as `exit code 3` or SIGSEGV.

    Args:
        code: As in `subprocess`, or with 128 more than the number of a signal, as a shell has it.
    """
    for number in (-code, code - 128):
        with contextlib.suppress(ValueError):
            return signal.Signals(number).name
    return f"exit code {code}"


@functools.cache
def host_facts() -> dict[str, Any]:
    """Returns what `features.image.enter` has passed to this process; nothing outside of an image.

    `image`: the file; `digest`: its SHA-256; `slurm`: question -> answer; `helpers`: the
    process that starts the workers, if they are on several nodes; `key`: the file of the user's
    own key.
    """
    return dict(json.loads(os.environ.get(HOST_VARIABLE, "{}")))


def image() -> dict[str, Any] | None:
    """Returns the image that this process runs in, as summary.json names it."""
    path = host_facts().get("image") or os.environ.get("APPTAINER_CONTAINER")
    return None if path is None else {"path": path, "sha256": host_facts().get("digest")}
