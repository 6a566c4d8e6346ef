"""Starts the real Snakemake on the file of a sweep, and counts its jobs."""

import re
from pathlib import Path

from support import snakemake


def start(
    folder: Path,
    *words: object,
    file: str = "mine.yaml",
    cores: int = 2,
    check: int = 0,
    **env: str,
) -> str:
    """Starts the sweep of a file in a folder, and returns the output.

    Args:
        folder: The working directory.
        words: Targets and options.
        file: The file of the sweep.
        cores: The number of cores.
        check: The expected exit code.
        env: Variables of its environment.
    """
    words = (*words, "--cores", cores, "--configfile", folder / file)
    done = snakemake(*words, cwd=folder, check=check, **env)
    return done.stdout + done.stderr


def jobs(printed: str) -> dict[str, int]:
    """Returns rule -> number of jobs that Snakemake has started, or would start."""
    if "Nothing to be done" in printed:
        return {}
    if log := re.search(r"Complete log\(s\): (.+)", printed):
        printed = Path(log[1]).read_text()
    counts = {}
    for line in printed.partition("Job stats:")[2].strip().splitlines()[2:]:
        rule, count = line.split()
        if rule == "total":
            return counts
        counts[rule] = int(count)
    raise AssertionError(f"no table of jobs: {printed}")


def planned(folder: Path, *words: object, **options) -> dict[str, int]:
    """Returns the jobs that a start would have."""
    return jobs(start(folder, *words, "--dry-run", **options))
