"""`qdsweep status`: where the runs of a sweep stand, as text."""

from collections.abc import Iterable, Iterator

from qdsweep.analysis.search import Searched
from qdsweep.analysis.search_status import explained, search_runs
from qdsweep.experiment.run_log import duration
from qdsweep.metrics import Metric
from qdsweep.records.plan import Plan
from qdsweep.records.progress import Standing, outlook, read_standing
from qdsweep.records.sweep_dir import SweepDir
from qdsweep.records.tail import last_line

# In the order of the table: what needs a person comes first.
STATES = ("failed", "running", "stopped", "waiting", "finished")


def table(standings: Iterable[Standing], metric: Metric) -> Iterator[tuple[str, ...]]:
    """Yields the rows of `qdsweep status`, labels first as `qdsweep watch` has them.

    Args:
        standings: Where the runs stand.
        metric: The metric whose value is shown.
    """
    for now in standings:
        score = now.metrics.get(metric.name)
        left = now.core_seconds_left
        yield (
            now.run.label,
            now.state,
            f"{now.done:,}/{now.run.budget:,}",
            "" if score is None else f"{metric.factor * score:,.6g}",
            "" if now.eta is None else duration(now.eta),
            f"{now.core_seconds / 3600:.3f}",
            "" if left is None else f"{left / 3600:.3f}",
            now.cause,
        )


def failures(standings: Iterable[Standing]) -> Iterator[str]:
    """Yields a line for each failed run: its folder's name, and all that is known of the cause."""
    for now in standings:
        if now.state == "failed":
            yield f"failed: {now.run.label} ({now.run.id}): {now.note}"


def search_standings(
    sweep: SweepDir, search: Searched, standings: Iterable[Standing]
) -> list[Standing]:
    """Returns where all runs of a search stand, those that stopped early too.

    Args:
        sweep: The sweep.
        search: What it has done.
        standings: Those of its finalists, and of the runs that confirm it.
    """
    asked = search_runs(search)
    others = [now for now in standings if now.run.id not in asked]
    own = [
        explained(read_standing(sweep.results.run(run), planned), why)
        for run, (planned, why) in asked.items()
    ]
    return [*own, *others]


def summary_line(standings: list[Standing]) -> str:
    """Returns the sum of a sweep in one line."""
    sums = outlook(standings)
    counts = ", ".join(
        f"{sums.counts[state]} {state}" for state in reversed(STATES) if sums.counts[state]
    )
    left = "unknown" if sums.left is None else f"{sums.left / 3600:.3f}"
    return f"{len(standings)} runs: {counts}; core-hours: {sums.used / 3600:.3f} used, {left} left"


def reevaluations(sweep: SweepDir, plan: Plan) -> Iterator[tuple[str, str]]:
    """Yields a line for each re-evaluation that has `failed`, and one for how many are `done`."""
    if plan.reevaluate is None:
        return
    runs = [sweep.results.run(run.id) for run in plan.runs()]
    stem = plan.reevaluate.stem
    missing = [run for run in runs if not run.corrected(stem).exists()]
    for run in missing:
        why = last_line(run.corrected(stem).with_suffix(".log"))
        if why.startswith("qdsweep: "):
            yield "failed", f"re-evaluation of {run.name}: {why.removeprefix('qdsweep: ')}"
    yield "done", f"re-evaluated: {len(runs) - len(missing)} of {len(runs)} runs"
