"""The image: where it is, whether it can be used, and its hash."""

import contextlib
import hashlib
import os
import re
import subprocess
from pathlib import Path

from qdsweep.config.files import HOME
from qdsweep.container.apptainer import find_program
from qdsweep.errors import BadInput
from qdsweep.versions import own_version

# The folder for images of a URL, in the working directory.
PULLED = Path("results/images")


def find_image(name: str) -> Path:
    """Finds the image, without the network.

    Args:
        name: A file, relative to the working directory or to `HOME`; or a URL.

    Returns:
        The absolute path of the file, or of the sandbox folder.

    Raises:
        BadInput: It does not exist.
    """
    if _is_url(name):
        path = _pulled(name).absolute()
        if not path.exists():
            raise BadInput(f"image = {name!r} was not pulled yet: {path} is missing")
        return path
    for path in (Path(name), HOME / name):
        with contextlib.suppress(OSError, ValueError):  # no file can have such a name
            if path.exists():
                return path.absolute()
    raise BadInput(
        f"image = {name!r}: there is no such file; build it with `make image` (or "
        "containers/build.sh) in the project's folder, or name another file or URL with the key "
        "image of the cluster config"
    )


def prepare(name: str) -> Path:
    """Pulls an image if it is not there, and makes sure that it can be used.

    Args:
        name: See `find_image`.

    Returns:
        Its path.

    Raises:
        BadInput: There is no Apptainer, no image, or no qdsweep of this version in it.
    """
    program, _ = find_program()
    if _is_url(name) and not _pulled(name).exists():
        _pull(program, name)
    path = find_image(name)
    words = [program, "--silent", "exec", "--cleanenv", "--no-home", "--pwd", "/"]
    done = subprocess.run(
        [*words, str(path), "python", "-m", "qdsweep", "--version"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    if done.returncode:
        reason = said[-1] if said else f"exit code {done.returncode}"
        missing = re.search("No module named|executable file not found", reason)
        raise BadInput(
            f"image {path}: "
            + ("it has no qdsweep" if missing else "nothing can be run in it")
            + f" ({reason}); build one with `make image`"
        )
    if done.stdout.strip() != own_version():
        raise BadInput(
            f"image {path}: it has {done.stdout.strip()}, but this project is {own_version()}: "
            "build it anew with `make image`"
        )
    return path


def digest(path: Path) -> str | None:
    """Returns the SHA-256 of an image file; None for a sandbox folder [hex]."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_url(name: str) -> bool:
    return "://" in name


def _pulled(url: str) -> Path:
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", url.split("://")[1]).strip("-")[-60:]
    return PULLED / f"{name}-{hashlib.sha256(url.encode()).hexdigest()[:8]}.sif"


def _pull(program: str, url: str) -> None:
    target = _pulled(url)
    target.parent.mkdir(parents=True, exist_ok=True)
    torn = target.with_suffix(f".{os.getpid()}.part")
    print(f"qdsweep: pulling {url} to {target}", flush=True)
    try:
        done = subprocess.run([program, "pull", str(torn), url], stdin=subprocess.DEVNULL)
        if done.returncode:
            raise BadInput(f"image = {url!r} cannot be pulled: the lines above say why")
        torn.rename(target)
    finally:
        torn.unlink(missing_ok=True)
