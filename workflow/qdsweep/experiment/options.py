"""How a run is computed, besides its cluster."""

from typing import NamedTuple


class Options(NamedTuple):
    """How a run is computed, besides its cluster. It never changes a result.

    Attributes:
        terminal: A person is watching a terminal: log there too, and draw a bar.
        max_seconds: Stop after so long, to go on later [s].
        attempt: Snakemake's count of attempts, from 1.
        allow_version_change: Go on from a reload file of other library versions.
    """

    terminal: bool = False
    max_seconds: float | None = None
    attempt: int = 1
    allow_version_change: bool = False
