"""Where a run stands, as far as the start of a sweep wants to know: a few numbers of state/."""

from dataclasses import dataclass, field
from pathlib import Path

from qdsweep.files import read_json


@dataclass(frozen=True)
class Standing:
    """A run's `status.json` and `last_stop.json`; defaults where it was never started.

    Attributes:
        status: finished, running, stopped, failed, or nothing.
        iterations: Finished iterations.
        evaluations: Evaluations of those.
        core_seconds: What they took [s].
        budget: The budget key and its amount.
        memory_stops: How often it ran out of memory.
        killed_job: The Slurm job that computed it last, where that job ended without a word.
    """

    status: str = ""
    iterations: int = 0
    evaluations: int = 0
    core_seconds: float = 0.0
    budget: dict[str, int] = field(default_factory=dict)
    memory_stops: int = 0
    killed_job: str | None = None


def read_standing(run_dir: Path) -> Standing:
    """Reads where a run stands; a file that is missing or damaged says nothing."""
    status = read_json(run_dir / "state" / "status.json")
    stop = read_json(run_dir / "state" / "last_stop.json")
    try:
        last = (status.get("attempts") or [{}])[-1]
        return Standing(
            status=str(status.get("status", "")),
            iterations=int(status.get("iteration", 0)),
            evaluations=int(status.get("evaluations", 0)),
            core_seconds=sum(status.get("seconds", {}).values()) * status.get("workers", 1),
            budget={unit: int(amount) for unit, amount in status.get("budget", {}).items()},
            memory_stops=int(stop.get("memory_stops", 0)),
            killed_job=None if "how" in last else last.get("slurm_job"),
        )
    except (ValueError, TypeError, AttributeError):
        return Standing()
