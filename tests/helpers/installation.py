"""qdsweep as a user installs it: its wheel, in an environment without a clone."""

import os
import re
import shutil
import venv
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support import BIN, alone, copy_project, locked, run, shared_folder


def wheel() -> Path:
    """Returns the project's wheel, built once for all processes of this pytest command."""
    folder = shared_folder() / "wheel"
    with alone("wheel"):
        if not folder.exists():
            clone = copy_project(shared_folder() / "wheel-sources")
            words = [BIN / "python", "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
            words += ["--no-build-isolation", "--wheel-dir", folder, clone]
            run(list(map(str, words)), cwd=shared_folder(), env=dict(os.environ), check=0)
    (file,) = folder.glob("*.whl")
    return file


def environment(*, package: bool = True) -> Path:
    """Returns an environment with only the libraries of requirements.lock, made once.

    They are the files of this venv's libraries, so nothing is downloaded.

    Args:
        package: Whether the wheel is installed too.

    Returns:
        The folder of its programs.
    """
    folder = shared_folder() / ("installed" if package else "libraries")
    file = wheel() if package else None
    with alone(folder.name):
        if not folder.exists():
            _create(folder, locked())
            if file:
                words = ["--python", str(folder), "install", "--quiet", "--no-index", str(file)]
                _pip(*words)
                _pip("--python", str(folder), "check")
    return folder / "bin"


def snakemake_alone() -> Path:
    """An environment with Snakemake and its requirements, without plugins; made once.

    Returns:
        Its folder of programs.
    """
    folder = shared_folder() / "snakemake"
    with alone(folder.name):
        if not folder.exists():
            _create(folder, _requirements("snakemake", set()))
    return folder / "bin"


def _requirements(name: str, known: set[str]) -> set[str]:
    """Adds a library and all its requirements."""
    if name not in known:
        known.add(name)
        for requirement in map(Requirement, requires(name) or ()):
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                _requirements(canonicalize_name(requirement.name), known)
    return known


def _create(folder: Path, libraries: Iterable[str]) -> None:
    """Makes an environment with these libraries of this venv."""
    venv.create(folder, symlinks=True)
    site = next(folder.glob("lib/python3*/site-packages"))
    for name in libraries:
        _link_library(name, site)


def activated(programs: Path) -> dict[str, str]:
    """Returns the variables of a shell in which the environment of these programs is active."""
    known = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return {**known, "PATH": os.pathsep.join([str(programs), "/usr/local/bin", "/usr/bin", "/bin"])}


def type_in(programs: Path, *words: object, cwd: Path, check: int | None = 0, **env: str):
    """Runs a program of an environment, as in a shell in which it is active."""
    program, *arguments = map(str, words)
    words = [str(programs / program), *arguments]
    return run(words, cwd=cwd, env=activated(programs) | env, check=check)


def _pip(*words: str) -> None:
    run([str(BIN / "python"), "-m", "pip", *words], cwd=None, env=dict(os.environ), check=0)


def _link_library(name: str, site: Path) -> None:
    try:
        files = distribution(name).files or []
    except PackageNotFoundError:  # pip's check reports whether it is needed
        return
    for file in files:
        source, target = Path(file.locate()), Path(os.path.normpath(site / file))
        if not source.is_file():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.parent.name == "bin":
            python = b"#!" + bytes(target.parent) + rb"/python"
            target.write_bytes(re.sub(rb"\A#!\S*/python\S*", python, source.read_bytes()))
            target.chmod(0o755)
            continue
        _link(source, target)
        if source.suffix == ".py":  # with what is compiled, which would take many seconds
            for compiled in source.parent.glob(f"__pycache__/{source.stem}.*"):
                if compiled.suffix in (".pyc", ".nbi", ".nbc"):  # others are half written
                    _link(compiled, target.parent / "__pycache__" / compiled.name)


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    try:
        target.hardlink_to(source)
    except FileExistsError:  # another library has it, too
        pass
    except OSError:  # another file system
        shutil.copy(source, target)


def host(folder: Path, tag: str) -> dict[str, str]:
    """Makes the project available to git as https://github.com/OWNER/qdsweep.

    Args:
        folder: An empty folder for it and for Snakemake's cache of it.
        tag: The tag of its commit.

    Returns:
        The environment for git.
    """
    repository = copy_project(folder / "OWNER/qdsweep")
    (repository / ".venv").unlink()
    known = {
        f"GIT_{who}_{what}": "test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    for words in (["init"], ["add", "."], ["commit", "--message", "all"], ["tag", tag]):
        run(["git", words[0], *words[1:]], cwd=repository, env={**os.environ, **known}, check=0)
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{folder}/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/",
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
