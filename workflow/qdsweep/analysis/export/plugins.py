"""The user's code that the runs of a sweep were made with, as an export packs it."""

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from qdsweep.config.compose import compose
from qdsweep.config.imports import INSTALLED
from qdsweep.config.source import without_comments
from qdsweep.records.config import read_config
from qdsweep.records.run_dir import RunFiles
from qdsweep.records.sources import code_of_run
from qdsweep.records.sweep_dir import Results

# Where `qdsweep run` looks for it in the unpacked folder.
FOLDER = "config/plugins"
_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def plugin_files(runs: Mapping[str, RunFiles], results: Results) -> dict[str, bytes]:
    """Returns the sources of the plug-ins of some runs, and what these import of config/plugins/.

    They have no comments, in which people are named; their hash is the same. What is not known any
    more is said on standard error.

    Args:
        runs: Run id -> its files.
        results: The folder results/.

    Returns:
        Path in the unpacked folder -> content.
    """
    found: dict[str, bytes] = {}
    for run, files in _one_of_each_kind(runs):
        experiment = compose(str(files.config))
        code = code_of_run(run, experiment, results)
        if not code and experiment.own_code:
            print(
                f"qdsweep: left out, the source of {', '.join(experiment.own_code)}: it has "
                f"changed since {run} was made, and results/sources/ does not have it",
                file=sys.stderr,
            )
        for place, source in code.items():
            if not place.startswith(f"{INSTALLED}/"):
                found.setdefault(f"{FOLDER}/{place}", without_comments(source))
    return found


def _one_of_each_kind(runs: Mapping[str, RunFiles]) -> Iterator[tuple[str, RunFiles]]:
    """Yields a run for each set of names that its config has."""
    seen = set()
    for run, files in sorted(runs.items()):
        names = frozenset(_names(read_config(files.config)))
        if names and names not in seen:
            seen.add(names)
            yield run, files


def _names(data: Any) -> Iterator[str]:
    """Yields what looks like a `module:Class`."""
    if isinstance(data, str) and _TARGET.fullmatch(data):
        yield data
    elif isinstance(data, dict | list):
        for value in data.values() if isinstance(data, dict) else data:
            yield from _names(value)
