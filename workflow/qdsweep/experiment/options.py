"""The options of a run, which never change a result."""

from typing import NamedTuple


class Options(NamedTuple):
    """The options by which a run is computed, in addition to its cluster.

    Attributes:
        terminal: A person is watching a terminal: log there too, and draw a bar.
        max_seconds: Stop after this time, to resume later [s].
        attempt: Snakemake's count of attempts, from 1.
        allow_version_change: Resume from a reload file of other library versions.
    """

    terminal: bool = False
    max_seconds: float | None = None
    attempt: int = 1
    allow_version_change: bool = False
