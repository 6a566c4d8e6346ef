"""Versions of installed libraries."""

import importlib.metadata
from collections.abc import Iterable


def installed_versions(libraries: Iterable[str]) -> dict[str, str]:
    """The versions of distributions; one that is not installed is left out."""
    found = {}
    for name in libraries:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
