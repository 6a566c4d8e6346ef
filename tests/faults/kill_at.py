"""Runs `qdsweep` and kills it (SIGKILL) at a boundary of the writing of a reload file.

python kill_at.py BOUNDARY SAVE qdsweep's arguments...
"""

import os
import signal
import sys
from pathlib import Path

import qdsweep.files as files
from qdsweep.cli import main

BOUNDARIES = (
    "after open",
    "half the bytes",
    "before fsync",
    "before rename",
    "before folder fsync",
)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(boundary: str, save: int) -> None:
    """Makes the `save`-th reload file the last thing that this process does."""
    saves = 0
    fsync, replace, opened = os.fsync, Path.replace, Path.open

    class Torn:
        """A file whose second half is never written."""

        def __init__(self, file):
            self.file = file

        def __getattr__(self, name):
            return getattr(self.file, name)

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.file.close()

        def write(self, content):
            if len(content) > 2000:  # the payload
                self.file.write(content[: len(content) // 2])
                self.file.flush()
                die()
            return self.file.write(content)

    def counting_open(path, *arguments, **named):
        nonlocal saves
        file = opened(path, *arguments, **named)
        if path.name.startswith(".reload-") and path.name.endswith(".tmp"):
            saves += 1
            if saves == save and boundary == "after open":
                die()
            if saves == save and boundary == "half the bytes":
                return Torn(file)
        return file

    def counting_fsync(descriptor):
        name = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        if saves == save and boundary == "before fsync" and ".reload-" in name:
            die()
        if saves == save and boundary == "before folder fsync" and name.endswith("/state"):
            die()
        return fsync(descriptor)

    def counting_replace(path, target):
        if saves == save and boundary == "before rename" and path.name.startswith(".reload-"):
            die()
        return replace(path, target)

    Path.open = counting_open
    Path.replace = counting_replace
    files.os.fsync = counting_fsync


if __name__ == "__main__":
    arm(sys.argv[1], int(sys.argv[2]))
    sys.exit(main(sys.argv[3:]))
