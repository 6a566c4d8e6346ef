"""What a package has once its authors may be named: licence, citation, and metadata of archives."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from qdsweep.config.files import read_yaml, to_yaml
from qdsweep.errors import BadInput

CITATION = "CITATION.cff"
KEYWORDS = ("quality diversity", "evolutionary computation", "parameter sweep")
# SPDX id -> its name.
LICENCES = {
    "MIT": "MIT License",
    "BSD-3-Clause": 'BSD 3-Clause "New" or "Revised" License',
    "Apache-2.0": "Apache License 2.0",
    "CC-BY-4.0": "Creative Commons Attribution 4.0 International",
    "CC0-1.0": "Creative Commons Zero v1.0 Universal",
}
_OTHER = """\
Copyright (c) {year} {authors}

This package is under the {name}.
SPDX-License-Identifier: {licence}
The text of the licence: {url}
"""
_AUTHORS = """\
who are the authors? Write CITATION.cff next to config/:
cff-version: 1.2.0
message: If you use these results, please cite them.
title: ...
authors:
  - given-names: Ada
    family-names: Lovelace
or set the name of git: git config user.name "Ada Lovelace\""""


class Publication(NamedTuple):
    """Under which licence, and by whom, a package is published.

    Attributes:
        licence: The SPDX id of its licence.
        authors: Their names.
        citation: The study's own CITATION.cff; empty if it has none.
    """

    licence: str
    authors: tuple[str, ...]
    citation: bytes = b""

    @property
    def url(self) -> str:
        """The address of the licence."""
        return f"https://spdx.org/licenses/{self.licence}.html"

    @property
    def origin(self) -> str:
        """Where the names of the authors come from."""
        return CITATION if self.citation else "git config user.name"


def publication_of(licence: str) -> Publication:
    """Returns the publication of the study in the working directory.

    Args:
        licence: One of `LICENCES`.

    Raises:
        BadInput: Nothing names its authors, or CITATION.cff is wrong.
    """
    path = Path(CITATION)
    if path.exists():
        return Publication(licence, _authors(read_yaml(path)), path.read_bytes())
    words = ["git", "config", "user.name"]
    try:
        name = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:  # there is no git
        name = ""
    if not name:
        raise BadInput(f"--public: {_AUTHORS}")
    return Publication(licence, (name,))


def _authors(citation: Mapping[str, object]) -> tuple[str, ...]:
    """Returns the names of CITATION.cff."""
    authors = citation.get("authors")
    if not isinstance(authors, list) or not authors:
        raise BadInput(f"{CITATION}: the key authors is missing: {_AUTHORS}")
    names = []
    for author in authors:
        parts = author if isinstance(author, dict) else {}
        words = [parts.get(key) for key in ("given-names", "name-particle", "family-names", "name")]
        names.append(" ".join(str(word) for word in words if word))
        if not names[-1]:
            raise BadInput(f"{CITATION}: authors: {author!r} has no family-names and no name")
    return tuple(names)


def public_files(name: str, about: Publication, day: str) -> dict[str, bytes]:
    """Returns LICENSE, CITATION.cff and .zenodo.json of a package.

    Args:
        name: The sweep.
        about: Its publication.
        day: The day on which the last run ended, in ISO 8601.
    """
    title = f"The sweep {name}: Quality-Diversity experiments"
    keys = {"year": day[:4], "authors": ", ".join(about.authors), "licence": about.licence}
    keys |= {"name": LICENCES[about.licence], "url": about.url}
    citation = {
        "cff-version": "1.2.0",
        "message": "If you use these results, please cite them as below.",
        "type": "dataset",
        "title": title,
        "authors": [{"name": author} for author in about.authors],
        "date-released": day,
        "keywords": list(KEYWORDS),
        "license": about.licence,
    }
    zenodo = {
        "title": title,
        "upload_type": "dataset",
        "description": "Config, code, results, tables and figures of a parameter sweep of "
        "Quality-Diversity experiments. README.txt describes each file.",
        "creators": [{"name": author} for author in about.authors],
        "access_right": "open",
        "license": about.licence.lower(),
        "keywords": list(KEYWORDS),
    }
    own = Path(__file__).parent / f"licences/{about.licence}.txt"
    text = own.read_text(encoding="utf-8") if own.is_file() else _OTHER
    return {
        "LICENSE": text.format(**keys).encode(),
        CITATION: about.citation or to_yaml(citation, allow_unicode=True).encode(),
        ".zenodo.json": (json.dumps(zenodo, indent=1, ensure_ascii=False) + "\n").encode(),
    }
