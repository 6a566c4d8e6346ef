"""The image: where it is, whether it can be used, and its hash.

Its program is Apptainer, or a Singularity that does the same.
"""

import contextlib
import functools
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

from qdsweep.config.files import HOME
from qdsweep.errors import BadInput
from qdsweep.files import temporary_name
from qdsweep.records.paths import Results
from qdsweep.versions import own_version

# The first versions that keep the user's umask, and read SINGULARITYENV_... with --cleanenv.
OLDEST = {"apptainer": (1, 0), "singularity-ce": (3, 8), "singularity": (3, 7)}
BUILD = "build one with containers/build.sh in a clone of qdsweep"
_INSTALL = "install Apptainer (`module load apptainer` on many clusters), or leave out --sdm"

# Images that a URL names are pulled into this folder of the working directory.
PULLED = Results(Path("results")).images


@functools.cache
def find_program() -> tuple[str, str]:
    """Finds the program that runs images.

    Returns:
        Its path, and the prefix of environment variables that it passes into the image.

    Raises:
        BadInput: There is none, it cannot be started, or it is too old.
    """
    path = shutil.which("apptainer") or shutil.which("singularity")
    if path is None:
        raise BadInput(f"neither apptainer nor singularity is on the PATH; {_INSTALL}")
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        reason = (getattr(error, "stderr", None) or str(error)).strip()
        raise BadInput(f"{path} --version failed: {reason}; {_INSTALL}") from None
    version = re.match(r"(\S+) version v?(\d+)\.(\d+)", done.stdout)
    if version is None or version[1] not in OLDEST:
        answer = done.stdout.strip()
        raise BadInput(f"{path} is neither Apptainer nor Singularity ({answer!r}); {_INSTALL}")
    oldest = OLDEST[version[1]]
    if (int(version[2]), int(version[3])) < oldest:
        raise BadInput(
            f"{path} is {done.stdout.strip()!r}, which is too old (oldest: {version[1]} "
            f"{oldest[0]}.{oldest[1]}); {_INSTALL}"
        )
    return path, "APPTAINERENV_" if version[1] == "apptainer" else "SINGULARITYENV_"


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
            raise BadInput(
                f"image = {name!r}: {path} is missing; start the sweep again, which pulls it"
            )
        return path
    for path in (Path(name), HOME / name):
        with contextlib.suppress(OSError, ValueError):  # no file can have such a name
            if path.exists():
                return path.absolute()
    raise BadInput(
        f"image = {name!r}: there is no such file; {BUILD}, or name another file or URL with the "
        "key image of the cluster config"
    )


def prepare_image(name: str) -> Path:
    """Pulls an image if it is not there, and makes sure that it can be used.

    Args:
        name: See `find_image`.

    Returns:
        Its path.

    Raises:
        BadInput: Apptainer, the image, or qdsweep of this version in it is missing.
    """
    program, _ = find_program()
    if _is_url(name) and not _pulled(name).exists():
        _pull(program, name)
    path = find_image(name)
    words = [program, "--silent", "exec", "--cleanenv", "--no-home", "--pwd", "/"]
    done = subprocess.run(
        [*words, str(path), "python", "-P", "-m", "qdsweep", "--version"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    output = (done.stderr.strip() or done.stdout.strip()).splitlines()
    if done.returncode:
        reason = output[-1] if output else f"exit code {done.returncode}"
        missing = re.search("No module named|executable file not found", reason)
        raise BadInput(
            f"image {path}: "
            + ("it has no qdsweep" if missing else "no program can be run in it")
            + f" ({reason}); {BUILD}"
        )
    if done.stdout.strip() != own_version():
        raise BadInput(
            f"image {path} has {done.stdout.strip()}, but this project is {own_version()}; "
            f"{BUILD} of this release"
        )
    return path


def image_digest(path: Path) -> str | None:
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
    torn = temporary_name(target)
    print(f"qdsweep: pulling {url} to {target}", flush=True)
    try:
        done = subprocess.run([program, "pull", str(torn), url], stdin=subprocess.DEVNULL)
        if done.returncode:
            raise BadInput(f"image = {url!r} cannot be pulled; the reason is in the lines above")
        torn.rename(target)
    finally:
        torn.unlink(missing_ok=True)
