"""A started `qdsweep explore`, its answers, and readers of its formats."""

import contextlib
import http.client
import json
import math
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from support import BIN


class Served(NamedTuple):
    """A page that is served.

    Attributes:
        port: Its port of 127.0.0.1.
        token: Its token.
        pid: The process of the server.
    """

    port: int
    token: str
    pid: int

    @property
    def address(self) -> str:
        """The address that the command has printed."""
        return f"http://127.0.0.1:{self.port}/#token={self.token}"

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a request of the page."""
        return {"Authorization": f"Bearer {self.token}"}

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes]:
        """Returns status and content of an answer; `headers` replace those of the page."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        with contextlib.closing(connection):
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, headers={**self.headers, **named})
            answer = connection.getresponse()
            return answer.status, answer.read()

    def get(self, path: str) -> bytes:
        """Returns the content of an answer that must be there."""
        status, content = self.ask(path)
        assert status == 200, content
        return content

    def index(self) -> dict:
        """Returns the index of the page."""
        return json.loads(self.get("/index"))


@contextlib.contextmanager
def served(*words: object, cwd: Path, idle: float | None = None) -> Iterator[Served]:
    """Starts the command and ends it after the block.

    Args:
        words: Its arguments.
        cwd: The working directory.
        idle: The longest wait for a request, if it is not the usual one [s].
    """
    command = [str(BIN / "qdsweep"), "explore", *map(str, words)]
    if idle is not None:
        patched = (
            f"from qdsweep.features.explore import page_server; page_server.IDLE_SECONDS = {idle}"
        )
        code = f"import sys; {patched}; from qdsweep.cli import main; sys.exit(main(sys.argv[1:]))"
        command = [sys.executable, "-c", code, *command[1:]]
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, text=True)
    with process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline()
            port, token = re.fullmatch(
                r"http://127\.0\.0\.1:(\d+)/#token=(\S+)\n", address
            ).groups()
            yield Served(int(port), token, process.pid)
        finally:
            process.terminate()


class Packed(NamedTuple):
    """The columns of a packed run, see qdsweep.features.explore.packed."""

    exact: bool
    is_approximate: bool
    evaluations: np.ndarray
    ends: np.ndarray
    cell: np.ndarray
    objective: np.ndarray
    final: np.ndarray
    measures: np.ndarray

    def at(self, frame: int) -> dict[int, np.float32]:
        """Returns cell -> objective after a number of frames."""
        end = self.ends[frame - 1] if frame else 0
        last = dict(zip(self.cell[:end].tolist(), self.objective[:end].tolist(), strict=True))
        return {cell: value for cell, value in last.items() if not math.isnan(value)}


def unpack(content: bytes) -> Packed:
    data = zlib.decompress(content)
    frames, insertions, elites, measures, flags = np.frombuffer(data, "<u4", 5)
    at = 20

    def column(kind: str, size: int) -> np.ndarray:
        nonlocal at
        bytes_ = np.frombuffer(data, np.uint8, 4 * size, at).reshape(4, size)
        at += 4 * size
        return np.ascontiguousarray(bytes_.T).reshape(-1).view(kind)

    columns = Packed(
        bool(flags & 1),
        bool(flags & 2),
        column("<u4", frames),
        np.cumsum(column("<u4", frames)),
        np.cumsum(column("<u4", insertions), dtype=np.uint32),
        column("<f4", insertions),
        np.cumsum(column("<u4", elites), dtype=np.uint32),
        column("<f4", elites * measures).reshape(measures, elites).T,
    )
    assert at == len(data)
    return columns


def records(film: bytes) -> list[tuple[str, bytes]]:
    """Returns kind and content of each record of a film."""
    parts, at = [], 0
    while at < len(film):
        (size,) = struct.unpack_from("<I", film, at)
        assert at + 4 + size <= len(film), "a record is truncated"
        parts.append((chr(film[at + 4]), film[at + 5 : at + 4 + size]))
        at += 4 + size
    return parts


def notes(film: bytes) -> dict:
    """Returns all keys of the JSON of a film; `fresh` is a list."""
    named: dict = {"fresh": []}
    for kind, content in records(film):
        if kind == "J":
            about = json.loads(content)
            named["fresh"] += [about.pop("fresh")] if "fresh" in about else []
            named |= about
    return named


def pictures(film: bytes) -> list[bytes]:
    return [content for kind, content in records(film) if kind == "F"]
