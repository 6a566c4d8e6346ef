"""Films for the page: the process that makes them, one at a time, and the cache on disk."""

import asyncio
import contextlib
import hashlib
import itertools
import json
import os
import signal
import struct
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from qdsweep.features.rollouts.rollout import slug
from qdsweep.features.rollouts.stream import note
from qdsweep.files import atomic
from qdsweep.records.paths import Results
from qdsweep.versions import __version__, installed_versions

# The time until the next record of a film; the same, once the reader of the film has left [s].
PATIENCE, GRACE = 60.0, 3.0
# A process with more memory is replaced after its film [bytes].
MOST_MEMORY = 300e6
# All films on disk [bytes].
MOST_CACHED = 200e6
_FORMAT = 1  # of the files in the cache
_LARGEST = 1 << 26  # a record, 64 MiB [bytes]
# Their versions decide how an episode looks.
_LIBRARIES = (
    *("numpy", "gymnasium", "pygame-ce", "pillow", "box2d", "mujoco", "pybullet", "ale-py"),
)
_NUMBERS = itertools.count(1)


@dataclass
class Wanted:
    """A film that a reader has asked for.

    Attributes:
        run: The run's folder.
        digest: The beginning of the digest of its archive.
        cell: The cell of the elite.
        baseline: The CPU baseline of the run.
        number: The number of the request.
        is_left: Whether the reader has left.
        is_complete: Whether all of the film was made, without an error.
    """

    run: Path
    digest: str
    cell: int
    baseline: str
    number: int = field(default_factory=lambda: next(_NUMBERS))
    is_left: bool = False
    is_complete: bool = False

    @property
    def line(self) -> bytes:
        """The request for the process."""
        keys = {"run": str(self.run), "digest": self.digest, "cell": self.cell}
        return json.dumps(keys | {"number": self.number}).encode() + b"\n"


class Studio:
    """The process that makes films. Further requests wait for their turn."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._baseline = ""
        self._turn = asyncio.Lock()
        self._current: Wanted | None = None

    async def start(self, baseline: str) -> asyncio.subprocess.Process:
        """Returns the process of a CPU baseline, which it starts if there is none."""
        process = self._process
        if process is None or process.returncode is not None or baseline != self._baseline:
            await self.close()
            self._baseline = baseline
            self._process = process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "qdsweep.features.explore.film_process", baseline),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,  # Ctrl-C reaches only the server, which ends it
            )
        return process

    async def close(self) -> None:
        """Ends the process."""
        process = self._process
        self._kill()
        if process is not None:
            self._process = None
            await process.wait()

    def _kill(self) -> None:
        """Kills the process, and all processes that a domain has started in it."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def leave(self, wanted: Wanted) -> None:
        """Ends a film early, because its reader has left."""
        wanted.is_left = True
        process = self._process
        if self._current is wanted and process is not None and process.stdin is not None:
            process.stdin.write(b"\n")
            asyncio.get_running_loop().call_later(GRACE, self._end_if, wanted)

    def _end_if(self, wanted: Wanted) -> None:
        if self._current is wanted:  # its domain has not answered since
            self._kill()

    async def film(self, wanted: Wanted) -> AsyncIterator[bytes]:
        """Yields the records of a film, when its turn comes, without the last one."""
        async with self._turn:
            if wanted.is_left:
                return
            process = await self.start(wanted.baseline)
            self._current = wanted
            is_at_end = False
            try:
                assert process.stdin is not None
                process.stdin.write(wanted.line)
                is_first = True
                while True:
                    kind, content = await _next(process)
                    if is_first and json.loads(content)["number"] != wanted.number:
                        raise ValueError("it answers another request")
                    if kind == b".":
                        is_at_end, wanted.is_complete = True, content == b"\x01"
                        break
                    is_first = False
                    yield struct.pack("<I", len(content) + 1) + kind + content
            except TimeoutError:
                yield note(error=f"The domain did not answer within {PATIENCE:g} s.")
            except (asyncio.IncompleteReadError, ConnectionError, ValueError, LookupError):
                yield note(error="The process that plays the episode has ended.")
            finally:
                self._current = None
                if not is_at_end:
                    await self.close()  # what it still writes belongs to this film
                elif _memory(process) > MOST_MEMORY:
                    await self.close()
                    await self.start(wanted.baseline)  # the next click need not wait for it


async def _next(process: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
    """Returns kind and content of the next record of a process."""
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE):
        head = await process.stdout.readexactly(5)
        (size,) = struct.unpack("<I", head[:4])
        if not 1 <= size <= _LARGEST:
            raise ValueError("it is not a record")
        return head[4:], await process.stdout.readexactly(size - 1)


def _memory(process: asyncio.subprocess.Process) -> float:
    try:
        return float(psutil.Process(process.pid).memory_info().rss)
    except psutil.Error:
        return 0.0


class Cache:
    """Complete films on disk, `results/explore/RUN/CELL-KEY.film`. The oldest are removed.

    Args:
        results: The folder results/.
        most: The largest size of all films [bytes].
    """

    def __init__(self, results: Results, most: float = MOST_CACHED) -> None:
        self._folder, self._most = results.explore, most
        self._versions = installed_versions(_LIBRARIES)

    def file(self, run: str, digest: str, cell: int) -> Path:
        """Returns the path of a film, whose name follows from all that decides its pictures."""
        key = json.dumps([_FORMAT, __version__, run, digest, cell, self._versions])
        name = f"{cell}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.film"
        return self._folder / slug(run) / name

    def write(self, file: Path, content: bytes) -> None:
        """Writes a film, and removes the oldest ones above the limit.

        A folder that cannot be written is the same as one without films.
        """
        with contextlib.suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            with atomic(file) as opened:
                opened.write(content)
            about = [(path.stat(), path) for path in self._folder.glob("*/*.film")]
            size = sum(stat.st_size for stat, _ in about)
            for stat, path in sorted(about, key=lambda entry: entry[0].st_mtime):
                if size <= self._most:
                    break
                path.unlink(missing_ok=True)
                size -= stat.st_size
