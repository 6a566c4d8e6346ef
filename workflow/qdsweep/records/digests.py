"""A table of finished runs with their digests, which shows whether other computations are equal."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from qdsweep.errors import BadInput
from qdsweep.files import damaged
from qdsweep.metrics import ARCHIVE_METRICS
from qdsweep.records.paths import Results
from qdsweep.records.plan import Plan
from qdsweep.records.results import read_summary
from qdsweep.records.status import read_status

DIGEST = "archive_digest"
DIGEST_METRICS = tuple(name for name in ARCHIVE_METRICS if name != "restarts")
DIGEST_COLUMNS = (
    *("sweep", "id", "algorithm", "experiment", "seed", "budget", "seconds", DIGEST),
    *(*DIGEST_METRICS, "versions"),
)
_NONE: Mapping[str, Any] = MappingProxyType({})


def digest_rows(
    plan: Plan,
    results: Results,
    *,
    confirming: Iterable[Mapping[str, Any]] = (),
    known: Mapping[str, Mapping[str, str]] = _NONE,
) -> Iterator[Mapping[str, str]]:
    """Yields the rows of those runs of a sweep that are finished at its budget, here or before.

    Args:
        plan: The sweep.
        results: The folder results/.
        confirming: The rows of confirm.json.
        known: `key_of_run` -> its row in an earlier table, whose further columns stay.

    Raises:
        BadInput: A run has no budget, or its summary is damaged.
    """
    values = {row.run: row.values for row in plan.computed}
    confirming = list(confirming)
    values |= {row["id"]: values.get(row["like"], {}) for row in confirming}
    for planned in plan.runs(confirming):
        if not planned.budget:
            raise BadInput(
                f"{results.sweep(plan.name).plan}: {planned.id} has no budget: start its sweep "
                "again"
            )
        run, before = results.run(planned.id), known.get(key_of_run(planned.id), {})
        budget = f"{planned.unit}={planned.budget}"
        status = read_status(run.state)
        if status.status != "finished" or status.budget != {planned.unit: planned.budget}:
            if before.get("budget") == budget:
                yield before
            continue
        summary = read_summary(run)
        try:
            measured = {
                "seconds": f"{summary['timings']['total'] * summary['workers']:.1f}",
                "versions": "; ".join(f"{key} {text}" for key, text in summary["versions"].items()),
                **{key: digest_text(summary[key]) for key in (DIGEST, *DIGEST_METRICS)},
            }
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise damaged(run.summary, error) from None
        yield {
            **before,
            "sweep": plan.name,
            "id": planned.id,
            "algorithm": values[planned.id].get("algorithm", ""),
            "experiment": values[planned.id].get("experiment", plan.experiment),
            "seed": planned.seed,
            "budget": budget,
            **measured,
        }


def key_of_run(run: str) -> str:
    """Returns seed and hash in a run's id, which are the same under a preset's former name."""
    return "-".join(run.rsplit("-", 2)[1:])


def digest_text(value: object) -> str:
    """Returns a value of a summary as the table has it."""
    return "" if value is None else str(value)
