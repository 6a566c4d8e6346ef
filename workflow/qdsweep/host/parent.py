"""Ties the life of a process to that of its parent."""

import ctypes
import os
import signal


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
