"""What another user of the machine tries with a run. What is found possible is a hole."""

import contextlib
import json
import os
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

NOBODY = 65534


@dataclass
class Target:
    """What there is to try.

    Attributes:
        folders: Where nothing may be written, and nothing secret read.
        private: What may not be read at all.
        sockets: Unix sockets.
        pids: Processes.
        ports: Where TLS is spoken, by Dask.
        certificates: Files with a certificate and its key, to try there.
        secrets: Texts that may stand nowhere.
    """

    folders: list[Path] = field(default_factory=list)
    private: list[Path] = field(default_factory=list)
    sockets: list[Path] = field(default_factory=list)
    pids: list[int] = field(default_factory=list)
    ports: list[tuple[str, int]] = field(default_factory=list)
    certificates: list[Path] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)


def holes(target: Target) -> list[str]:
    """Tries all of it in a process of the user `nobody`, and returns what was possible."""
    reads, writes = os.pipe()
    child = os.fork()  # no new program: where Python is, nobody else may look
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            open_holes = json.dumps([*_holes(target)])
        except BaseException as error:
            open_holes = json.dumps([f"the stranger failed: {error!r}"])
        os.write(writes, open_holes.encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as pipe:
        open_holes = json.loads(pipe.read())
    os.waitpid(child, 0)
    return open_holes


def _holes(target: Target) -> Iterator[str]:
    for folder in target.folders:
        for path in (folder, *folder.rglob("*")):
            yield from _file_holes(path, target.secrets)
    for path in target.private:
        with contextlib.suppress(OSError):
            path.read_bytes() if path.is_file() else [*path.iterdir()]
            yield f"read {path}"
    for path in target.sockets:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as mine:
            mine.connect(str(path))
            yield f"{path} let it in"
    for pid in target.pids:
        yield from _process_holes(pid, target.secrets)
    for port in target.ports:
        yield from _port_holes(port, target.certificates)


def _file_holes(path: Path, secrets: list[str]) -> Iterator[str]:
    with contextlib.suppress(OSError):
        if path.is_dir():
            (path / "stranger").touch()
        else:
            path.open("r+b").close()
        yield f"wrote {path}"
    with contextlib.suppress(OSError):
        if path.is_file() and any(secret.encode() in path.read_bytes() for secret in secrets):
            yield f"read a secret in {path}"


def _process_holes(pid: int, secrets: list[str]) -> Iterator[str]:
    of = Path(f"/proc/{pid}")
    for name in ("environ", "mem", "maps"):
        with contextlib.suppress(OSError):
            (of / name).open("rb").read(1)
            yield f"read {of / name}"
    for name in ("fd", "cwd/."):
        with contextlib.suppress(OSError):
            [*(of / name).iterdir()]
            yield f"looked into {of / name}"
    words = (of / "cmdline").read_text()
    yield from (f"a secret in the command of {pid}" for secret in secrets if secret in words)


def _port_holes(port: tuple[str, int], certificates: list[Path]) -> Iterator[str]:
    for pem in (None, *certificates):
        with contextlib.suppress(OSError):  # a port that is not heard from here, too
            if _greets(port, pem):
                yield f"{port} let in {pem.name if pem else 'without a certificate'}"
    with contextlib.suppress(OSError), socket.create_connection(port, timeout=10) as plain:
        plain.sendall(b"\0" * 64)
        if len(plain.recv(100)) >= 10:  # more than an alert of TLS
            yield f"{port} talks without TLS"


def _greets(port: tuple[str, int], pem: Path | None) -> bool:
    """Whether Dask says something, which it does as soon as it has accepted the certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if pem:
        context.load_cert_chain(pem)
    with (
        socket.create_connection(port, timeout=10) as plain,
        context.wrap_socket(plain) as encrypted,
    ):
        return bool(encrypted.recv(1))
