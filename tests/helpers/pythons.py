"""The Pythons of this machine."""

import functools
import shutil
import subprocess
import sys
from pathlib import Path

VERSIONS = ("3.12", "3.13", "3.14")


@functools.cache
def other_pythons() -> dict[str, Path]:
    """Finds those that qdsweep may have besides this one, on PATH and among pyenv's."""
    programs: dict[str, Path] = {}
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    for version in VERSIONS:
        on_path = shutil.which(f"python{version}")
        pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
        for python in [Path(on_path), *pyenv] if on_path else pyenv:
            words = [python, "-c", "import sys; print(*sys.version_info[:2], sep='.')"]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.stdout.strip() == version != ours:
                programs.setdefault(version, python)
    return programs
