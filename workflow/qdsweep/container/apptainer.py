"""Apptainer, or a Singularity that does the same."""

import functools
import re
import shutil
import subprocess

from qdsweep.errors import BadInput

# The first versions that keep the user's umask, and read SINGULARITYENV_... with --cleanenv.
OLDEST = {"apptainer": (1, 0), "singularity-ce": (3, 8), "singularity": (3, 7)}
INSTALL = "install Apptainer (`module load apptainer` on many clusters), or leave out --sdm"


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
        raise BadInput(f"neither apptainer nor singularity is on the PATH: {INSTALL}")
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip()
        raise BadInput(f"{path} --version failed: {said}; {INSTALL}") from None
    found = re.match(r"(\S+) version v?(\d+)\.(\d+)", done.stdout)
    if found is None or found[1] not in OLDEST:
        raise BadInput(f"{path}: neither Apptainer nor Singularity: {done.stdout.strip()!r}")
    oldest = OLDEST[found[1]]
    if (int(found[2]), int(found[3])) < oldest:
        raise BadInput(
            f"{path} is {done.stdout.strip()!r}, which is too old: at least {found[1]} "
            f"{oldest[0]}.{oldest[1]} is needed; {INSTALL}"
        )
    return path, "APPTAINERENV_" if found[1] == "apptainer" else "SINGULARITYENV_"
