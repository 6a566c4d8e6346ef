"""Attacks on a run by another user of the machine. Each success is a vulnerability."""

import contextlib
import json
import os
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NOBODY = 65534


@dataclass
class Target:
    """The targets of the attacks.

    Attributes:
        folders: Folders in which nothing may be written, and no secret may be read.
        private: Files that must not be readable.
        sockets: Unix sockets.
        pids: Processes.
        ports: Ports on which Dask uses TLS.
        certificates: Files with a certificate and its key, to try on these ports.
        secrets: Texts that must not appear anywhere.
    """

    folders: list[Path] = field(default_factory=list)
    private: list[Path] = field(default_factory=list)
    sockets: list[Path] = field(default_factory=list)
    pids: list[int] = field(default_factory=list)
    ports: list[tuple[str, int]] = field(default_factory=list)
    certificates: list[Path] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)


def holes(target: Target) -> list[str]:
    """Tries all attacks in a process of the user `nobody`, and returns the successful ones."""
    found: list[str] = as_nobody(lambda: [*_holes(target)])
    return found


def as_nobody(act: Callable[[], Any], groups: Sequence[int] = (), user: int = NOBODY) -> Any:
    """Calls a function in a process of another user; returns its result, or its error's text.

    Args:
        act: The function. Its result becomes JSON.
        groups: Further groups of the user.
        user: Its number; `nobody` by default.
    """
    reads, writes = os.pipe()
    child = os.fork()  # not a new program, because the other user cannot read Python's folder
    if child == 0:
        try:
            os.setgroups([*groups])
            os.setgid(NOBODY)
            os.setuid(user)
            result = json.dumps(act())
        except BaseException as error:
            result = json.dumps([f"the stranger failed: {error!r}"])
        os.write(writes, result.encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as pipe:
        result = json.loads(pipe.read())
    os.waitpid(child, 0)
    return result


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
        with contextlib.suppress(OSError):  # includes ports that cannot be reached from here
            if _greets(port, pem):
                yield f"{port} let in {pem.name if pem else 'without a certificate'}"
    with contextlib.suppress(OSError), socket.create_connection(port, timeout=10) as plain:
        plain.sendall(b"\0" * 64)
        if len(plain.recv(100)) >= 10:  # more than a TLS alert
            yield f"{port} talks without TLS"


def _greets(port: tuple[str, int], pem: Path | None) -> bool:
    """Whether Dask sends something, which it does as soon as it accepts the certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if pem:
        context.load_cert_chain(pem)
    with (
        socket.create_connection(port, timeout=10) as plain,
        context.wrap_socket(plain) as encrypted,
    ):
        return bool(encrypted.recv(1))
