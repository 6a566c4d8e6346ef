"""A file system as clusters have them: builds and drives cluster_files.c."""

import struct
from collections import Counter
from collections.abc import Collection
from pathlib import Path

from disks import library

# As cluster_files.c has them.
TRAITS = ("clock", "link", "rename", "list", "nothing", "refused")
_HEAD = struct.Struct(f"{1 + len(TRAITS)}i4x2d4096s")
_SIZE = _HEAD.size + 8 + 8192 * 1048


class ClusterFiles:
    """The switch of the file system: a file that all processes share.

    Args:
        path: Where it is to be; beside it lie files that were replaced, for those who still see
            them.
        folder: What lies below it has the traits.
    """

    def __init__(self, path: Path, folder: Path) -> None:
        self.path, self.folder = path, folder

    def set(self, traits: Collection[str], late: tuple[float, float] = (2.0, 5.0)) -> None:
        """Says which traits hold from now on, and forgets what was done before.

        Args:
            traits: Of TRAITS.
            late: How late others see a file that took a name, and listings [s].
        """
        bits = sum(1 << TRAITS.index(trait) for trait in traits)
        head = _HEAD.pack(bits, *[0] * len(TRAITS), *late, str(self.folder.resolve()).encode())
        with self.path.open("wb") as file:
            file.write(head)
            file.truncate(_SIZE)

    @property
    def fired(self) -> Counter[str]:
        """How often each trait has changed what a process saw."""
        numbers = _HEAD.unpack(self.path.read_bytes()[: _HEAD.size])
        return Counter(dict(zip(TRAITS, numbers[1:], strict=False)))

    def environment(self, node: str = "", clock: float = 0.0, main: float = 0.0) -> dict[str, str]:
        """What a process needs to meet it.

        Args:
            node: The node that it is on; without, each process sees the others late.
            clock: By how much that node's clock is ahead, for files that are written [s].
            main: The same for the main Snakemake.
        """
        named = {"QDSWEEP_NODE": node} if node else {}
        return {
            "LD_PRELOAD": str(library("cluster_files")),
            "QDSWEEP_FILES": str(self.path),
            "QDSWEEP_CLOCK": str(clock),
            "QDSWEEP_CLOCK_MAIN": str(main),
            **named,
        }
