"""Whether a file says who made it: names, paths, addresses and jobs, in every layer of it."""

import getpass
import os
import re
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qdsweep.analysis.export.layers import layers, plain
from qdsweep.config.files import CLONE

# They are on every machine and name nobody.
NOBODY = ("root", "localhost", "localdomain", "localhost.localdomain")
# In bytes that are no text, a shorter name is met by chance.
_LONG = 5


@dataclass(frozen=True)
class Secret:
    """Something that must not be found.

    Attributes:
        kind: What it is, in words.
        hint: Text in lower case without which it cannot be there: quick to look for.
        pattern: What it looks like in text.
        raw: What it looks like in other bytes; nothing where it is too short for that.
    """

    kind: str
    hint: str
    pattern: re.Pattern[str]
    raw: bytes = b""

    def found_in(self, layer: str | bytes) -> str | None:
        """What of it is in a layer, as it stands there."""
        if isinstance(layer, bytes):
            return self.raw.decode() if self.raw and self.raw in layer else None
        if self.hint not in layer.lower():
            return None
        match = self.pattern.search(layer)
        return match[0] if match else None


GENERAL = (
    Secret(
        "an e-mail address",
        "@",
        re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.)+[A-Za-z]{2,}\b"),
    ),
    Secret("a home directory", "/home/", re.compile(r"/home/[\w.-]+")),
    Secret("a home directory", "/users/", re.compile(r"/Users/[\w.-]+")),
)


def secrets_of(
    results: Path, attempts: Iterable[dict[str, Any]], allowed: Iterable[str] = ()
) -> list[Secret]:
    """What would tell who made a sweep, and where.

    Args:
        results: The folder of the results.
        attempts: Of all its runs, with host and Slurm job.
        allowed: Names that may stay, being common words.

    Returns:
        Host names (of this machine and of the attempts; their first part and their domain, too),
        the user's names, paths, Slurm jobs, and what any address or home directory looks like.
    """
    attempts = list(attempts)
    hosts = {socket.gethostname(), *(str(one["host"]) for one in attempts if one.get("host"))}
    words = {part: "the host name" for host in hosts for part in _parts(host)}
    words |= dict.fromkeys(_user_names(), "the user name")
    skipped = {"", *NOBODY, *(word.lower() for word in allowed)}
    jobs = {str(one["slurm_job"]) for one in attempts if one.get("slurm_job")}
    return [
        *(_word(kind, word) for word, kind in words.items() if word.lower() not in skipped),
        *(_path(path) for path in _paths(results)),
        *(_job(job) for job in sorted(jobs)),
        *GENERAL,
    ]


def findings(name: str, content: bytes, secrets: Iterable[Secret]) -> Iterator[str]:
    """Where in a file something is that must not be there, and what, in words."""
    for where, layer in layers(name, content):
        for secret in secrets:
            found = secret.found_in(layer)
            if found is not None:
                yield f"{where}: {secret.kind} {found!r}"


def _parts(host: str) -> list[str]:
    """A host's whole name, its first part, and its domain where that is more than one word."""
    first, _, domain = host.partition(".")
    return [host, first, *([domain] if "." in domain else [])]


def _user_names() -> set[str]:
    import pwd

    names = set()
    try:
        entry = pwd.getpwuid(os.getuid())
        full = entry.pw_gecos.split(",")[0].strip()
        names = {entry.pw_name, *([full] if " " in full else [])}
    except KeyError:  # a user of a container without a name
        pass
    try:
        return names | {getpass.getuser()}
    except (KeyError, OSError):
        return names


def _paths(results: Path) -> list[str]:
    """The folders of this machine that could have come in; not /, nor one right below it."""
    home = Path.home()
    places = {home, home.resolve(), Path.cwd(), results.resolve(), CLONE.parent}
    return sorted(str(p) for p in places if len(p.parts) > 2 or (p == home and p != Path("/")))


def _word(kind: str, word: str) -> Secret:
    """A long name anywhere in a text; a short one, met in other words, only as a word."""
    word = plain(word)
    own = re.escape(word)
    pattern = own if len(word) >= _LONG else rf"(?<!\w){own}(?!\w)"
    return Secret(kind, word.lower(), re.compile(pattern, re.IGNORECASE), _raw(word))


def _path(path: str) -> Secret:
    return Secret("the path", path.lower(), re.compile(rf"{re.escape(path)}(?![\w-])"), _raw(path))


def _job(job: str) -> Secret:
    pattern = re.compile(rf"(?:job|slurm)\D{{0,16}}(?<!\d){re.escape(job)}(?!\d)", re.IGNORECASE)
    return Secret("a Slurm job", job.lower(), pattern)


def _raw(text: str) -> bytes:
    return text.encode() if len(text) >= _LONG else b""
