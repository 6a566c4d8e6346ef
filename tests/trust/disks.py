"""A disk that fails once, and commands on it; builds and controls faulty_disk.c."""

import errno
import functools
import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

import pytest
from support import alone, shared_folder

HERE = Path(__file__).parent
# The same names as in faulty_disk.c.
KINDS = ("create", "write", "sync", "rename", "link", "cut", "folder", "close")
HOW = ("fail", "short", "torn")
_NUMBERS = struct.Struct("6i")
_SIZE = _NUMBERS.size + 4096


@functools.cache
def library(source: str) -> Path:
    """Builds a library of the tests, once for all processes; skips without a compiler."""
    if not os.environ.get("CI") and shutil.which("gcc") is None:
        pytest.skip("a library to preload has to be compiled: apt-get install gcc libc6-dev")
    built = shared_folder() / f"{source}.so"
    with alone(source):
        if not built.exists():
            words = ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", built]
            subprocess.run([*words, HERE / f"{source}.c", "-ldl"], check=True)
    return built


class Fault(NamedTuple):
    """A fault of the disk.

    Attributes:
        kinds: The kinds of calls that count, separated by blanks.
        nth: The number of the failing call, from 1; 0 for none.
        error: The name of its errno.
        how: fail, short (half is written, without an error) or `torn` (half is written, then it
            fails).
    """

    kinds: str = " ".join(KINDS)
    nth: int = 0
    error: str = "ENOSPC"
    how: str = "fail"


class Call(NamedTuple):
    """A counted call: its kind and the file."""

    kind: str
    path: str


class Disk:
    """The switch of the disk, a file that all processes share.

    Args:
        path: The path of the switch.
        folder: The folder whose files are on the disk.
    """

    def __init__(self, path: Path, folder: Path) -> None:
        self.path, self.folder = path, folder
        self._log = path.with_name(f"{path.name}.log")
        self.set(Fault())

    @property
    def environment(self) -> dict[str, str]:
        """Returns the environment of a process on this disk."""
        return {"LD_PRELOAD": str(library("faulty_disk")), "QDSWEEP_DISK": str(self.path)}

    def set(self, fault: Fault) -> None:
        """Sets the fault, and resets the counter."""
        self._log.unlink(missing_ok=True)
        kinds = sum(1 << KINDS.index(kind) for kind in fault.kinds.split())
        numbers = kinds, fault.nth, getattr(errno, fault.error), HOW.index(fault.how), 0, 0
        content = _NUMBERS.pack(*numbers) + str(self.folder.resolve()).encode()
        if not self.path.exists():
            self.path.touch()
        with self.path.open("r+b") as file:
            file.write(content.ljust(_SIZE, b"\0"))

    @property
    def failed(self) -> bool:
        """Returns whether the call has failed."""
        return bool(_NUMBERS.unpack(self.path.read_bytes()[: _NUMBERS.size])[5])

    @property
    def calls(self) -> list[Call]:
        """Returns the counted calls, in their order."""
        if not self._log.exists():
            return []
        return [Call(*line.split(" ", 1)) for line in self._log.read_text().splitlines()]


@dataclass
class Answer:
    """The end of a command."""

    code: int
    text: str


class Forks:
    """Runs commands of qdsweep, each in a process on the disk (see forks.py)."""

    def __init__(self, disk: Disk, experiments: Sequence[object], env: dict[str, str]) -> None:
        self.disk = disk
        self._log = disk.path.with_name("commands.log")
        sent = json.dumps([experiment.model_dump(mode="json") for experiment in experiments])
        self._process = subprocess.Popen(
            [sys.executable, HERE / "forks.py", sent],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=env | disk.environment,
            text=True,
        )
        assert int(self._read()) > 0, "it has the library"

    def run(self, *words: object, cwd: Path, fault: Fault = Fault()) -> Answer:  # noqa: B008
        """Runs a command to its end, with a fault of the disk."""
        self.disk.set(fault)
        request = {"words": [str(word) for word in words], "cwd": str(cwd), "log": str(self._log)}
        self._pipe.write(json.dumps(request) + "\n")
        self._pipe.flush()
        return Answer(int(self._read()), self._log.read_text())

    def close(self) -> None:
        """Ends the process."""
        self._pipe.close()
        self._process.wait(300)

    @property
    def _pipe(self) -> IO[str]:
        assert self._process.stdin is not None
        return self._process.stdin

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


def copy(folder: Path, target: Path) -> Path:
    """Replaces a folder by a copy of another one, with its hard links and times."""
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run(["cp", "-a", folder, target], check=True)
    return target
