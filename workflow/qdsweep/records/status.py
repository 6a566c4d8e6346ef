"""status.json, the state of a run that is computed, with its attempts."""

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from qdsweep.errors import BadInput
from qdsweep.files import read_json_if_whole, write_json
from qdsweep.metrics import CURVES
from qdsweep.records.paths import RunDir, StateDir
from qdsweep.records.reload_head import read_head
from qdsweep.records.sums import checksum

REMEDY = "Read the log, fix the cause, and repeat the same command. It keeps all finished runs."
"""The remedy for runs that failed."""

COMPUTED = ("finished", "running", "stopped")
"""The `status` of a run that has results so far and did not fail."""


@dataclass(frozen=True)
class Status:
    """A run's status.json; defaults where it was never started, or where the file is damaged.

    Attributes:
        id: The run; empty where it is not known.
        status: finished, running, stopped, failed, or nothing.
        iterations: Finished iterations.
        evaluations: Evaluations of those.
        steps: Environment steps of those, 0 where they are not counted.
        metrics: Name -> value after them, of those that have one.
        seconds: Their time [s].
        engine: The engine that evaluated them.
        workers: How many workers did.
        budget: The budget key and its amount.
        attempts: The attempts at the run, the last one last.
        is_damaged: Whether the file cannot be read, or has changed since it was written.
        fingerprint: The experiment's; empty in files of earlier releases.
        code: A digest of its record `sources`; empty where it has none. See `dependencies`.
    """

    id: str = ""
    status: str = ""
    iterations: int = 0
    evaluations: int = 0
    steps: int = 0
    metrics: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    engine: str = ""
    workers: int = 1
    budget: dict[str, int] = field(default_factory=dict)
    attempts: list[dict[str, Any]] = field(default_factory=list)
    is_damaged: bool = False
    fingerprint: str = ""
    code: str = ""

    @property
    def core_seconds(self) -> float:
        """What its iterations took on all workers [s]."""
        return self.seconds * self.workers

    def has_reached(self, budget: Mapping[str, int]) -> bool:
        """Returns whether it is finished and went as far as a budget (`Experiment.budget`)."""
        return self.status == "finished" and all(
            getattr(self, unit) >= amount for unit, amount in budget.items()
        )

    @property
    def killed_job(self) -> str | None:
        """The Slurm job that computed it last, where that job left no record of its end."""
        last = self.attempts[-1] if self.attempts else {}
        return None if "how" in last else last.get("slurm_job")


class StatusFile(TypedDict, total=False):
    """The keys of status.json, next to the metrics of the last iteration.

    Attributes:
        id: The run.
        fingerprint: The whole hash of its experiment; its id has the start.
        status: finished, running, stopped or failed.
        budget: The budget key and its amount.
        iteration: The last finished iteration.
        own_metrics: The names of the user's metrics.
        eta_seconds: An estimate of the time that is left [s]; None where it is unknown.
        archive: As in summary.json.
        seconds: Seconds of each phase.
        engine: The engine.
        workers: Its workers.
        updated: When the file was written.
        attempts: The attempts at the run, the last one last.
        sources: As in summary.json, without the code of metrics.
        accepted: As in summary.json.
        sha256: The checksum of the other keys.
    """

    id: str
    fingerprint: str
    status: str
    budget: dict[str, int]
    iteration: int
    own_metrics: list[str]
    eta_seconds: float | None
    archive: dict[str, Any]
    seconds: dict[str, float]
    engine: str
    workers: int
    updated: str
    attempts: list[dict[str, Any]]
    sources: dict[str, str]
    accepted: list[dict[str, Any]]
    sha256: str


def read_status(state: StateDir) -> Status:
    """Reads the status of a run."""
    file = state.status
    if not file.exists():  # of most runs, when a sweep starts
        return Status()
    data = read_json_if_whole(file)
    if data.pop("sha256", None) not in (None, checksum(data)):  # earlier releases write none
        return Status(is_damaged=True)
    try:
        names = (*(metric.name for metric in CURVES), *data.get("own_metrics", ()))
        return Status(
            id=str(data.get("id", "")),
            status=str(data.get("status", "")),
            iterations=int(data.get("iteration", 0)),
            evaluations=int(data.get("evaluations", 0)),
            steps=int(data.get("steps") or 0),
            metrics={name: float(data[name]) for name in names if data.get(name) is not None},
            seconds=math.fsum(
                spent for phase, spent in data.get("seconds", {}).items() if phase != "compile"
            ),
            engine=str(data.get("engine", "")),
            workers=int(data.get("workers", 1)),
            budget={unit: int(amount) for unit, amount in data.get("budget", {}).items()},
            attempts=_attempts(data),
            is_damaged=not data,
            fingerprint=str(data.get("fingerprint", "")),
            code=checksum(data["sources"])[:16] if "sources" in data else "",
        )
    except (ValueError, TypeError, AttributeError, OverflowError):
        return Status(attempts=_attempts(data), is_damaged=True)


def fingerprint_of(state: StateDir, status: Status) -> str:
    """Returns the fingerprint of a run's experiment.

    Args:
        state: The run's `state/`.
        status: Its status. For a finished run of an earlier release, its reload file is read.

    Returns:
        The fingerprint; empty where it is unknown.
    """
    if status.fingerprint or status.status != "finished":
        return status.fingerprint
    for path in state.reloads()[:1]:
        with contextlib.suppress(OSError, ValueError), path.open("rb") as file:
            return str(read_head(file)[0]["fingerprint"])
    return ""


def name_fingerprint(state: StateDir, fingerprint: str) -> None:
    """Adds the fingerprint of its experiment to the status of a finished run that has none."""
    if read_status(state).status == "finished":
        with contextlib.suppress(OSError):  # a folder of another user
            write_status(state, {**read_json_if_whole(state.status), "fingerprint": fingerprint})


def require_fingerprint(folder: Path, known: str, planned: str) -> None:
    """Refuses the folder of a run whose id is only by chance that of another one.

    Args:
        folder: The run's folder.
        known: The fingerprint of the experiment in it; empty where it is unknown.
        planned: The fingerprint of the experiment that belongs there; empty where it is unknown.

    Raises:
        BadInput: They differ.
    """
    if known and planned and known != planned:
        raise BadInput(
            f"{folder} has another experiment (its fingerprint is {known}, see config.yaml there) "
            f"than the planned one (fingerprint {planned}): their run ids are equal by chance. "
            "Change a value of the planned one in its last digit, or use another results folder"
        )


def write_status(state: StateDir, status: dict[str, Any]) -> None:
    """Writes the status of a run.

    Args:
        state: The run's `state/`.
        status: `StatusFile`, and the metrics.
    """
    about = {key: value for key, value in status.items() if key != "sha256"}
    write_json(state.status, {**about, "sha256": checksum(about)})


def read_attempts(path: Path) -> list[dict[str, Any]]:
    """Reads the attempts at a run that its status.json or summary.json lists."""
    return _attempts(read_json_if_whole(path))


def _attempts(data: dict[str, Any]) -> list[dict[str, Any]]:
    attempts = data.get("attempts")
    attempts = attempts if isinstance(attempts, list) else []
    return [attempt for attempt in attempts if isinstance(attempt, dict)]


def is_too_short(run_dir: RunDir, budget: Mapping[str, int]) -> bool:
    """Returns whether a run's published summary ends before a budget, or is damaged.

    Args:
        run_dir: The run's folder.
        budget: As `Experiment.budget` has it.
    """
    if not run_dir.summary.exists():  # of most runs, when a sweep starts
        return False
    summary = read_json_if_whole(run_dir.summary)
    return any((summary.get(unit) or 0) < amount for unit, amount in budget.items())
