"""status.json: what a run says of itself while it is computed; with its attempts."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qdsweep.files import read_json_if_whole, write_json
from qdsweep.metrics import CURVES
from qdsweep.records.run_dir import StateDir


@dataclass(frozen=True)
class Status:
    """A run's status.json; defaults where it was never started, or where the file is damaged.

    Attributes:
        id: The run; empty where it is not known.
        status: finished, running, stopped, failed, or nothing.
        iterations: Finished iterations.
        evaluations: Evaluations of those.
        steps: Environment steps of those, 0 where nobody counts them.
        metrics: Name -> value after them, of those that have one.
        seconds: What they took [s].
        engine: What evaluated them.
        workers: How many workers did.
        budget: The budget key and its amount.
        attempts: The attempts at the run, the last one last.
        is_damaged: Whether there is a file that says nothing.
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
        """The Slurm job that computed it last, where that job ended without a word."""
        last = self.attempts[-1] if self.attempts else {}
        return None if "how" in last else last.get("slurm_job")


def read_status(state: StateDir) -> Status:
    """Reads the status of a run."""
    file = state.status
    data = read_json_if_whole(file)
    if not data and not file.exists():  # of most runs, when a sweep starts
        return Status()
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
        )
    except (ValueError, TypeError, AttributeError, OverflowError):
        return Status(attempts=_attempts(data), is_damaged=True)


def write_status(state: StateDir, status: dict[str, Any]) -> None:
    """Writes the status of a run.

    Args:
        state: The run's `state/`.
        status: id, status, budget, iteration, metrics (the user's are named in `own_metrics`),
            seconds of each phase, engine, workers, attempts and what else is good to know.
    """
    write_json(state.status, status)


def read_attempts(path: Path) -> list[dict[str, Any]]:
    """Reads the attempts at a run that its status.json or summary.json lists."""
    return _attempts(read_json_if_whole(path))


def _attempts(data: dict[str, Any]) -> list[dict[str, Any]]:
    attempts = data.get("attempts")
    return [one for one in attempts if isinstance(one, dict)] if isinstance(attempts, list) else []
