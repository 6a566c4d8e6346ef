"""The options of a run, which never change a result."""

from typing import NamedTuple


class Options(NamedTuple):
    """The options of a run, in addition to its cluster.

    Attributes:
        terminal: Whether a user watches a terminal, which then shows the log and a bar.
        max_seconds: Stop after this time [s], to resume later.
        attempt: Snakemake's count of attempts, from 1.
        allow_version_change: Whether to resume from a reload file of other library versions.
    """

    terminal: bool = False
    max_seconds: float | None = None
    attempt: int = 1
    allow_version_change: bool = False
