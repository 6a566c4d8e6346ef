"""Why a run stopped last: last_stop.json, and failure.json of a run that would fail again."""

from dataclasses import asdict, dataclass
from typing import Any

from qdsweep.files import read_json_if_whole, write_json
from qdsweep.records.paths import StateDir


@dataclass(frozen=True)
class LastStop:
    """Why a run stopped last.

    Attributes:
        cause: stopped, memory, workers, storage, failure, or nothing where it never stopped.
        memory_stops: How often it ran out of memory.
        iteration: The last finished iteration.
        message: Its message.
        fingerprint: The experiment's.
    """

    cause: str = ""
    memory_stops: int = 0
    iteration: int = 0
    message: str = ""
    fingerprint: str = ""


def read_last_stop(state: StateDir) -> LastStop:
    """Reads why a run stopped last; defaults where it is unknown."""
    data = read_json_if_whole(state.last_stop)
    try:
        return LastStop(
            cause=str(data.get("cause", "")),
            memory_stops=int(data.get("memory_stops", 0)),
            iteration=int(data.get("iteration", 0)),
            message=str(data.get("message", "")),
            fingerprint=str(data.get("fingerprint", "")),
        )
    except (ValueError, TypeError):
        return LastStop()


def write_last_stop(state: StateDir, stop: LastStop) -> None:
    """Writes why a run stopped."""
    write_json(state.last_stop, asdict(stop))


def read_failure(state: StateDir) -> dict[str, Any]:
    """Reads failure.json; empty where the run would not fail again."""
    return read_json_if_whole(state.failure)


def write_failure(state: StateDir, stop: LastStop, about: dict[str, Any]) -> None:
    """Writes failure.json.

    Args:
        state: The run's `state/`.
        stop: Why it stopped.
        about: The exception, and details of the evaluation that failed.
    """
    write_json(state.failure, {**asdict(stop), **about})


def forget_failure(state: StateDir) -> None:
    """Removes failure.json and the solution that failed."""
    state.failure.unlink(missing_ok=True)
    state.failed_solution.unlink(missing_ok=True)
