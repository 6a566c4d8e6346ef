"""Versions of this package and of installed libraries."""

import hashlib
import importlib.metadata
from collections.abc import Iterable
from pathlib import Path

import qdsweep


def installed_versions(libraries: Iterable[str]) -> dict[str, str]:
    """The versions of distributions; one that is not installed is left out."""
    found = {}
    for name in libraries:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def own_version() -> str:
    """Name, version and code of this package: what differs between an image and its project."""
    folder = Path(__file__).parent
    code = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        code.update(f"{file.relative_to(folder)}\n".encode() + file.read_bytes())
    return f"qdsweep {qdsweep.__version__} (code {code.hexdigest()[:8]})"
