"""summary.json: what came out of a run."""

from typing import Any

from qdsweep.files import AGAIN, write_json
from qdsweep.records.run_dir import RunFiles
from qdsweep.records.sums import read_checked


def read_summary(files: RunFiles, remedy: str = AGAIN) -> dict[str, Any]:
    """Reads summary.json; keys of other releases stay.

    Args:
        files: The run's folder, its `state/`, or a snapshot.
        remedy: What to do where there is none.

    Raises:
        BadInput: It is missing or damaged.
    """
    return read_checked(files.summary, remedy)


def write_summary(files: RunFiles, summary: dict[str, Any]) -> None:
    """Writes summary.json.

    Args:
        files: Where to.
        summary: id, status, iterations, evaluations, metrics, digest and geometry of the archive,
            the domain's step, timings, versions, engine, workers, attempts.
    """
    write_json(files.summary, summary)
