"""Prints envs/qdsweep.yaml, the conda environment of `snakemake --sdm conda`, from the lock file.

Snakemake copies the file elsewhere, so that it cannot refer to the lock file: it repeats it.
"""

from pathlib import Path

LOCK = Path(__file__).parent / "requirements.lock"


def environment(lock: str) -> str:
    """The environment file with the libraries of a lock file's text, hashes included."""
    requirements = lock.replace(" \\\n", " ").splitlines()
    lines = [
        "# Made by envs/lock.sh from requirements.lock.",
        "channels:",
        "  - conda-forge",
        "  - nodefaults",
        "dependencies:",
        "  - python =3.11",
        "  - pip",
        "  - pip:",
        *(f'      - "{" ".join(line.split())}"' for line in requirements if line),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(environment(LOCK.read_text()), end="")
