"""Ties the life of a process to that of its parent."""

import ctypes
import os
import signal


def die_with_parent(number: signal.Signals) -> None:
    """Asks for this signal at the parent's end, so that nothing stays behind (Linux alone)."""
    parent = os.getppid()
    try:
        ctypes.CDLL(None).prctl(1, number)  # PR_SET_PDEATHSIG
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:  # it died in between
        os._exit(1)
