"""Finds what identifies the author of a file: names, paths, addresses and jobs."""

import getpass
import html
import io
import os
import re
import socket
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qdsweep.config.files import HOME

# They exist on every machine and identify no user.
NOBODY = ("root", "localhost", "localdomain", "localhost.localdomain")
_LONG = 5  # a shorter name may stand inside another word
_ESCAPED_SIGN = re.compile(r"\\([!-/:-@\[-`{-~])")
# Pictures and packed data of the page: letters that stand for bytes and are no words.
_BASE64 = re.compile(r"(?<=base64,)[A-Za-z0-9+/=\s]{16,}|[A-Za-z0-9+/]{1000,}={0,2}")
_STREAM = re.compile(rb"stream\r?\n.*?endstream", re.DOTALL)


@dataclass(frozen=True)
class Secret:
    """A kind of text that must not be in an export: its name and its pattern."""

    kind: str
    hint: str  # a part of it in lower case, which is quick to look for first
    pattern: re.Pattern[str]

    def found_in(self, text: str) -> str | None:
        """Returns the first match in a text."""
        match = self.pattern.search(text) if self.hint in text.lower() else None
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


# In the user's own files.
AUTHORS = (
    Secret("the name of an author", "author", re.compile(r"(?i)(?<![a-z])authors?_*\s*[:=].*")),
    Secret(
        "the owner of a copyright", "copyright", re.compile(r"(?i)(?<![a-z])copyright(?![a-z]).*")
    ),
)


def secrets_of(
    results: Path,
    attempts: Iterable[dict[str, Any]],
    allowed: Iterable[str] = (),
    *,
    is_public: bool = False,
) -> list[Secret]:
    """Returns what would identify the author or machine of a sweep, except for the allowed names.

    These are host names (of this machine and of the attempts; their first part and their domain,
    too), the user's names, paths, Slurm jobs, and what any address or home directory looks like.
    In what is public, people may be named: no user's name and no address is a secret.
    """
    attempts = list(attempts)
    hosts = {
        socket.gethostname(),
        *(str(attempt["host"]) for attempt in attempts if attempt.get("host")),
    }
    words = {part: "the host name" for host in hosts for part in _parts(host)}
    words |= {} if is_public else dict.fromkeys(_user_names(), "the user name")
    skipped = {"", *NOBODY, *(word.lower() for word in allowed)}
    jobs = {str(attempt["slurm_job"]) for attempt in attempts if attempt.get("slurm_job")}
    return [
        *(_word(kind, word) for word, kind in words.items() if word.lower() not in skipped),
        *(_path(path) for path in _paths(results)),
        *(_job(job) for job in sorted(jobs)),
        *(secret for secret in GENERAL if not (is_public and secret.hint == "@")),
    ]


def findings(name: str, content: bytes, secrets: Iterable[Secret]) -> Iterator[str]:
    r"""Yields a sentence for each match in a file.

    Codes of letters (`\u00fc`) stay as they are: nothing in a packed file is written with them.
    Of arrays (`.npz`) it searches names, fields and values that are text; of a PDF the text
    outside its drawings. (The words of a drawing are in the SVG too.)
    """
    text = _text(name, content)
    for secret in secrets:
        match = secret.found_in(text)
        if match is not None:
            yield f"{name}: {secret.kind} {match!r}"


def named_lines(name: str, content: bytes, secrets: Iterable[Secret]) -> Iterator[str]:
    """Yields a sentence for each line of a user's file that has a match, and for the whole of data.

    Args:
        name: The file.
        content: Its bytes.
        secrets: What is looked for.
    """
    secrets = list(secrets)
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError:
        with suppress(ValueError, OSError):  # of a damaged or pickled .npz
            yield from findings(name, content, secrets)
        return
    for number, line in enumerate(lines, start=1):
        yield from findings(f"{name}:{number}", line.encode(), secrets)


def _text(name: str, content: bytes) -> str:
    """Returns the words of a file."""
    if name.endswith(".npz"):
        return "\n".join(_words(content))
    if name.endswith(".pdf"):  # in UTF-16 it has two bytes a letter
        outside = _STREAM.sub(b"", content).replace(b"\xfe\xff", b" ").replace(b"\0", b"")
        return outside.decode("latin-1")
    return _plain(_BASE64.sub(" ", content.decode(errors="replace")))


def _words(content: bytes) -> Iterator[str]:
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        for name, array in arrays.items():
            yield f"{name} {array.dtype}"
            if array.dtype.kind in "US":
                yield from map(str, array.astype("U").ravel())


def _plain(text: str) -> str:
    """Returns text without the codes of HTML and the backslashes of LaTeX and Markdown."""
    return unicodedata.normalize("NFC", _ESCAPED_SIGN.sub(r"\1", html.unescape(text)))


def _parts(host: str) -> list[str]:
    """Returns a host's whole name, its first part, and its domain if that has several words."""
    first, _, domain = host.partition(".")
    return [host, first, *([domain] if "." in domain else [])]


def _user_names() -> set[str]:
    import pwd

    names = set()
    with suppress(KeyError, OSError):  # in a container the user may have no name
        names.add(getpass.getuser())
    with suppress(KeyError):
        entry = pwd.getpwuid(os.getuid())
        full = entry.pw_gecos.split(",")[0].strip()
        names |= {entry.pw_name, *([full] if " " in full else [])}
    return names


def _paths(results: Path) -> list[str]:
    """Returns the folders of this machine that files may name; not / and none directly below it."""
    home = Path.home()
    places = {home, home.resolve(), Path.cwd(), results.resolve(), HOME}
    return sorted(str(p) for p in places if len(p.parts) > 2 or (p == home and p != Path("/")))


def _word(kind: str, word: str) -> Secret:
    """Returns the pattern of a name: a long one anywhere, a short one only as a whole word."""
    word = _plain(word)
    own = re.escape(word)
    pattern = own if len(word) >= _LONG else rf"(?<!\w){own}(?!\w)"
    return Secret(kind, word.lower(), re.compile(pattern, re.IGNORECASE))


def _path(path: str) -> Secret:
    return Secret("the path", path.lower(), re.compile(rf"{re.escape(path)}(?![\w-])"))


def _job(job: str) -> Secret:
    pattern = re.compile(rf"(?:job|slurm)\D{{0,16}}(?<!\d){re.escape(job)}(?!\d)", re.IGNORECASE)
    return Secret("a Slurm job", job.lower(), pattern)
