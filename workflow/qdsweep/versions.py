"""Versions of this package and of installed libraries."""

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from qdsweep.errors import QdsweepError

__version__ = "0.2.0"
_QUIET: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 10}


def installed_versions(libraries: Iterable[str]) -> dict[str, str]:
    """Returns the versions of those distributions that are installed.

    `box2d` is also built as `ufal-pybox2d`, which has wheels for more Python versions. Its 2.3.10.5
    is the fifth build of 2.3.10, with the same bits.
    """
    versions = {}
    for name in libraries:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
        if name == "box2d" and name not in versions:
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                build = importlib.metadata.version("ufal-pybox2d")
                versions[name] = ".".join(build.split(".")[:3])
    return versions


def torch_build() -> dict[str, str]:
    """Returns the version of torch with its build, such as 2.13.0+cpu; empty if not installed.

    A distribution from a public index lacks the build in its version, but torch's own file has it.
    """
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return {}
    text = Path(spec.origin).with_name("version.py").read_text()
    build = re.search(r"^__version__ = '(.*)'$", text, re.MULTILINE)
    return {"torch": build[1]} if build else {}


def requirements(library: str) -> list[str]:
    """Returns the requirements of a distribution without extras; empty if it is not installed."""
    try:
        lines = importlib.metadata.requires(library) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    needed = [line.partition(";") for line in lines]
    return [re.split(r"[^\w.-]", name)[0] for name, _, marker in needed if "extra" not in marker]


def missing_names(library: str, seen_in: str, names: Iterable[str]) -> QdsweepError:
    """Returns the error of private names that the installed version of a library lacks.

    Args:
        library: The distribution.
        seen_in: A version that has them.
        names: The names.
    """
    title, here = {"ribs": "pyribs"}.get(library, library), importlib.metadata.version(library)
    return QdsweepError(
        f"qdsweep uses {', '.join(names)}, which {title} {here} does not have: install {title} "
        f"{seen_in} (pip install {library}=={seen_in})"
    )


def own_commit() -> str:
    """Returns the Git commit of the clone that this package runs from; empty outside of a clone."""
    here = Path(__file__)
    git = ["git", "-C", str(here.parent)]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        # In an environment inside another repository, this file is not one of its files.
        subprocess.run([*git, "ls-files", "--error-unmatch", here.name], check=True, **_QUIET)
        found = subprocess.run([*git, "rev-parse", "--short=10", "HEAD"], check=True, **_QUIET)
        return str(found.stdout).strip()
    return ""


def own_version() -> str:
    """Returns name, version and code of this package, to compare an image with its project."""
    folder = Path(__file__).parent
    code = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        path = file.relative_to(folder)
        if path.parts[0] != "data":  # presets of a wheel, which a clone has elsewhere
            code.update(f"{path}\n".encode() + file.read_bytes())
    return f"qdsweep {__version__} (code {code.hexdigest()[:8]})"
