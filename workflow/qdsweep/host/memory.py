"""What can never fit in this machine's memory is refused by name, before anything runs."""

import os

from qdsweep.errors import BadInput


def require_memory(size: int, what: str) -> None:
    """Refuses what is larger than all memory of this machine.

    An array that is not written yet takes no memory, so the system may well grant what can never be
    filled.

    Args:
        size: What it takes once it is full [bytes].
        what: Its key and value, and what they ask for.

    Raises:
        BadInput: There is not so much memory.
    """
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if size > memory:
        taken, there = (f"{number / 2**30:,.0f} GiB" for number in (size, memory))
        raise BadInput(f"{what} takes {taken}, and this machine has {there}; take a smaller one")
