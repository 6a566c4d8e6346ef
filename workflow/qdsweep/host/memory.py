"""What can never fit in memory is refused by name, before anything runs."""

import os
from pathlib import Path

from qdsweep.errors import BadInput

# More than any machine has [bytes].
_LARGEST = 2**46


def require_memory(size: int, what: str, *, anywhere: bool = False) -> None:
    """Refuses what is larger than all memory of this machine, swap included.

    An array that is not written yet takes no memory, so the system may well grant what can never be
    filled.

    Args:
        size: What it takes once it is full [bytes].
        what: Its key and value, and what they ask for.
        anywhere: Whether another machine may hold it: then only what none has is refused.

    Raises:
        BadInput: There is not so much memory.
    """
    memory = _LARGEST if anywhere else _memory()
    if size > memory:
        taken, there = (f"{number // 2**30:,} GiB" for number in (size, memory))
        has = "no machine has so much" if anywhere else f"this machine has {there}"
        raise BadInput(f"{what} takes {taken}, and {has}; take a smaller one")


def grants_all() -> bool:
    """Returns whether the system lets a program have arrays that are larger than all memory."""
    try:
        return Path("/proc/sys/vm/overcommit_memory").read_text(encoding="ascii").strip() == "1"
    except OSError:
        return False


def _memory() -> int:
    """Returns the memory of this machine, swap included [bytes]."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        lines = []
    swap = [int(line.split()[1]) for line in lines if line.startswith("SwapTotal:")]  # [kB]
    return memory + 1024 * sum(swap)
