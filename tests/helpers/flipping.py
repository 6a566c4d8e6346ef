"""Bits that flip in files, and commands that then read them in this process."""

import contextlib
import io
import logging
import os
import random
import shutil
import subprocess
from pathlib import Path
from unittest import mock


def flip(path: Path, chance: random.Random, start: int = 0, stop: int | None = None) -> int:
    """Flips one bit in place, as a disk does, without a new time of modification.

    Args:
        path: The file.
        chance: Chooses the bit.
        start: The first byte that it may choose.
        stop: The byte after the last one.

    Returns:
        The position of the bit.
    """
    stat = path.stat()
    position = chance.randrange(start * 8, (stop or stat.st_size) * 8)
    with path.open("r+b") as file:
        file.seek(position // 8)
        byte = file.read(1)[0]
        file.seek(position // 8)
        file.write(bytes([byte ^ (1 << position % 8)]))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    return position


def copy(folder: Path, target: Path) -> Path:
    """A copy with the same times and hard links."""
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run(["cp", "-a", folder, target], check=True)
    return target


def say(*words: object, cwd: Path) -> tuple[int, str]:
    """Runs a command of qdsweep in this process, which raises unexpected errors."""
    from qdsweep.cli import main

    printed = io.StringIO()
    root = logging.getLogger()
    handlers, root.handlers = root.handlers, []
    try:
        with (
            mock.patch("qdsweep.cli._leave_threads"),
            contextlib.chdir(cwd),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            code = main([str(word) for word in words])
    finally:
        root.handlers = handlers
    return code, printed.getvalue()
