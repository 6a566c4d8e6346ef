"""A file system like those of clusters; builds and controls cluster_files.c."""

import struct
from collections import Counter
from collections.abc import Collection
from pathlib import Path

from disks import library

# The same names as in cluster_files.c.
TRAITS = ("clock", "link", "rename", "list", "nothing", "refused")
_HEAD = struct.Struct(f"{1 + len(TRAITS)}i4x2d4096s")
_SIZE = _HEAD.size + 8 + 8192 * 1048


class ClusterFiles:
    """The switch of the file system, a file that all processes share.

    Args:
        path: The path of the switch. Replaced files, which some processes still see, are next to
            it.
        folder: The folder whose files have the traits.
    """

    def __init__(self, path: Path, folder: Path) -> None:
        self.path, self.folder = path, folder

    def set(self, traits: Collection[str], late: tuple[float, float] = (2.0, 5.0)) -> None:
        """Sets the current traits, and resets the counters.

        Args:
            traits: Some of TRAITS.
            late: The delay with which others see renamed files and listings [s].
        """
        bits = sum(1 << TRAITS.index(trait) for trait in traits)
        head = _HEAD.pack(bits, *[0] * len(TRAITS), *late, str(self.folder.resolve()).encode())
        with self.path.open("wb") as file:
            file.write(head)
            file.truncate(_SIZE)

    @property
    def fired(self) -> Counter[str]:
        """Returns how often each trait has changed the view of a process."""
        numbers = _HEAD.unpack(self.path.read_bytes()[: _HEAD.size])
        return Counter(dict(zip(TRAITS, numbers[1:], strict=False)))

    def environment(self, node: str = "", clock: float = 0.0, main: float = 0.0) -> dict[str, str]:
        """Returns the environment of a process on this file system.

        Args:
            node: Its node. Without one, each process sees the others with a delay. `name@1` and
                `name@2` are two machines of one name.
            clock: The advance of that node's clock, for written files [s].
            main: The same for the main Snakemake process.
        """
        named = {"QDSWEEP_NODE": node} if node else {}
        return {
            "LD_PRELOAD": str(library("cluster_files")),
            "QDSWEEP_FILES": str(self.path),
            "QDSWEEP_CLOCK": str(clock),
            "QDSWEEP_CLOCK_MAIN": str(main),
            **named,
        }
