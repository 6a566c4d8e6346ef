"""Versions of this package and of installed libraries."""

import hashlib
import importlib.metadata
import re
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


def requirements(library: str) -> list[str]:
    """The distributions that a distribution requires, without its extras; none if it is absent."""
    try:
        lines = importlib.metadata.requires(library) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    needed = [line.partition(";") for line in lines]
    return [re.split(r"[^\w.-]", name)[0] for name, _, marker in needed if "extra" not in marker]


def own_version() -> str:
    """Name, version and code of this package: what differs between an image and its project."""
    folder = Path(__file__).parent
    code = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        path = file.relative_to(folder)
        if path.parts[0] != "data":  # a wheel's presets, which a clone has elsewhere
            code.update(f"{path}\n".encode() + file.read_bytes())
    return f"qdsweep {qdsweep.__version__} (code {code.hexdigest()[:8]})"
