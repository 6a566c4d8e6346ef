"""Where the runs of a sweep stand, read only from what they write into state/."""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from qdsweep.analysis.plan import read_reevaluate
from qdsweep.errors import BadInput
from qdsweep.experiment.run_log import duration
from qdsweep.files import read_json
from qdsweep.host.lock import describe, is_alive, read_owner
from qdsweep.planning.confirmation import confirming_rows

_DAMAGED = "its status.json is damaged; a start that computes makes it anew"
UNITS = ("iterations", "evaluations")


class Standing(NamedTuple):
    """Where one run stands.

    Attributes:
        id: The run.
        state: finished, running, stopped, failed or waiting (not started).
        done: How much of the budget is used.
        budget: The budget.
        unit: iterations or evaluations.
        qd_score: QD score now, or None.
        eta: Seconds to the end, or None.
        core_seconds: Core-seconds used.
        core_seconds_left: Core-seconds left at this run's own rate, or None.
        note: Why it failed or stopped, or who computes it.
        workers: Workers that compute it, or did.
    """

    id: str
    state: str
    done: int
    budget: int
    unit: str
    qd_score: float | None
    eta: float | None
    core_seconds: float
    core_seconds_left: float | None
    note: str
    workers: int = 1


def read_standings(sweep_dir: Path, runs_dir: Path) -> list[Standing]:
    """Reads where each run of a sweep stands; a note tells those that confirm it.

    Args:
        sweep_dir: `results/sweeps/NAME`.
        runs_dir: `results/runs`.

    Raises:
        BadInput: There is no such sweep; the message lists those that there are.
    """
    budgets = planned_budgets(sweep_dir)
    confirms = {row["id"]: f"confirms {row['group']}" for row in confirming_rows(sweep_dir)}
    standings = [standing(runs_dir / run, unit, budget) for run, (unit, budget) in budgets.items()]
    return [
        run._replace(note="; ".join(filter(None, (confirms.get(run.id), run.note))))
        for run in standings
    ]


def planned_budgets(sweep_dir: Path) -> dict[str, tuple[str, int]]:
    """Returns the runs of a sweep, each with the unit and the largest of its rows' budgets.

    Those that confirm the sweep are runs of it.

    Raises:
        BadInput: There is no such sweep; the message lists those that there are.
    """
    plan = read_json(sweep_dir / "plan.json")
    if (sweep_dir / "plan.json").exists() and not _is_plan(plan):
        raise BadInput(
            f"{sweep_dir / 'plan.json'} is damaged: start snakemake with that sweep, which writes "
            "it anew"
        )
    if not plan:
        known = sorted(path.parent.name for path in sweep_dir.parent.glob("*/plan.json"))
        raise BadInput(
            f"{sweep_dir}: there is no such sweep here; known: {', '.join(known) or 'none'} "
            "(a sweep is known from its first start on)"
        )
    budgets: dict[str, tuple[str, int]] = {}
    for row in [*plan["rows"], *confirming_rows(sweep_dir)]:
        unit = next(unit for unit in UNITS if row[unit] is not None)
        largest = max(row[unit], budgets.get(row["id"], (unit, 0))[1])
        budgets[row["id"]] = (unit, largest)
    return budgets


def _is_plan(plan: dict[str, Any]) -> bool:
    try:
        return all({"id", *UNITS} <= row.keys() for row in plan["rows"])
    except (KeyError, TypeError, AttributeError):
        return False


def standing(run_dir: Path, unit: str, budget: int, *, alive: bool | None = None) -> Standing:
    """Returns where one run stands against a budget.

    Args:
        run_dir: `results/runs/ID`.
        unit: iterations or evaluations.
        budget: How many.
        alive: Whether it is being computed; None: its lock is asked.
    """
    folder = run_dir / "state"
    if alive is None:
        alive = is_alive(folder / "lock")
    status = read_json(folder / "status.json")
    try:
        if not status and (folder / "status.json").exists():
            raise ValueError("no JSON")
        done = int(status.get("iteration" if unit == "iterations" else unit, 0))
        seconds = math.fsum(status.get("seconds", {}).values())
        workers = int(status.get("workers", 1))
        score = status.get("qd_score")
        score = None if score is None else float(score)
    except (ValueError, TypeError, AttributeError, OverflowError):
        reached = read_json(folder / "summary.json").get(unit)
        done = reached if isinstance(reached, int) else 0
        state = "running" if alive else "finished" if done >= budget > 0 else "stopped"
        left = 0.0 if state == "finished" else None
        return Standing(run_dir.name, state, done, budget, unit, None, None, 0.0, left, _DAMAGED)
    left = seconds / done * max(0, budget - done) if done else None
    state, note = _state(folder, status, alive, done >= budget > 0)
    return Standing(
        run_dir.name,
        state,
        done,
        budget,
        unit,
        score,
        left if state == "running" else None,
        seconds * workers,
        0.0 if state == "finished" else None if left is None else left * workers,
        note,
        workers,
    )


def _state(folder: Path, status: dict[str, Any], alive: bool, reached: bool) -> tuple[str, str]:
    if alive:
        return "running", describe(read_owner(folder / "lock"))
    if reached and (folder / "summary.json").exists():
        return "finished", ""
    ending = read_json(folder / "last_stop.json")
    if status.get("status") == "failed" or (folder / "failure.json").exists():
        return "failed", f"{ending.get('message', '')} | {last_line(folder / 'run.log')}".strip(
            " |"
        )
    if not status:
        return "waiting", ""
    if status.get("status") == "running":
        return "stopped", "killed without a word; goes on from its reload file"
    return "stopped", str(ending.get("message", ""))


def last_line(path: Path) -> str:
    """Returns the last line of a log that is not empty."""
    return next((line for line in reversed(last_lines(path)) if line.strip()), "")


def last_lines(path: Path, size: int = 8_192) -> list[str]:
    """Returns the lines within the last bytes of a log; the first one may lack its beginning.

    Args:
        path: The log; none where it is missing.
        size: How much of it is read [bytes].
    """
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - size))
            return file.read().decode(errors="replace").splitlines()
    except OSError:
        return []


def sweep_names(results: Path) -> list[str]:
    """Returns the names of all sweeps, the one started last first."""
    plans = (results / "sweeps").glob("*/plan.json")
    return [path.parent.name for path in sorted(plans, key=_age)]


def _age(path: Path) -> float:
    return -path.stat().st_mtime


def table(standings: Iterable[Standing]) -> Iterator[tuple[str, ...]]:
    """Yields the rows of `qdsweep status`, as text."""
    for run in standings:
        yield (
            run.id,
            run.state,
            f"{run.done:,}/{run.budget:,}",
            "" if run.qd_score is None else f"{run.qd_score:,.6g}",
            "" if run.eta is None else duration(run.eta),
            f"{run.core_seconds / 3600:.3f}",
            "" if run.core_seconds_left is None else f"{run.core_seconds_left / 3600:.3f}",
            run.note,
        )


def total(standings: list[Standing]) -> str:
    """Returns the sum of a sweep in one line."""
    states = [run.state for run in standings]
    counts = ", ".join(
        f"{states.count(state)} {state}"
        for state in ("finished", "running", "stopped", "failed", "waiting")
        if state in states
    )
    used = sum(run.core_seconds for run in standings) / 3600
    known = [run.core_seconds_left for run in standings if run.core_seconds_left is not None]
    left = f"{sum(known) / 3600:.3f}" + ("" if len(known) == len(standings) else " or more")
    return f"{len(standings)} runs: {counts}; core-hours: {used:.3f} used, {left} left"


def reevaluations(sweep_dir: Path, runs_dir: Path) -> Iterator[tuple[str, str]]:
    """Yields how far a sweep's re-evaluations have come, in lines.

    Yields:
        `failed`, for each that has failed, or `done`, for their number; and the line.
    """
    settings = read_reevaluate(sweep_dir)
    if settings is None:
        return
    stem = settings.stem
    runs = list(dict.fromkeys(row["id"] for row in read_json(sweep_dir / "plan.json")["rows"]))
    missing = [run for run in runs if not (runs_dir / run / f"{stem}.json").exists()]
    for run in missing:
        why = last_line(runs_dir / run / f"{stem}.log")
        if why.startswith("qdsweep: "):
            yield "failed", f"re-evaluation of {run}: {why.removeprefix('qdsweep: ')}"
    yield "done", f"re-evaluated: {len(runs) - len(missing)} of {len(runs)} runs"
