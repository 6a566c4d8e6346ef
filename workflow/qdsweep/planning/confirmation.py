"""The confirmation of a sweep: its winners run again, with seeds that did not choose them."""

from qdsweep.config.experiment import Experiment
from qdsweep.config.sweep import SweepFile
from qdsweep.records.confirm import read_confirm
from qdsweep.records.sweep_dir import Results
from qdsweep.sweep.runs import Sweep


def confirming(settings: SweepFile, sweep: Sweep, results: Results) -> Sweep:
    """Returns the runs known to confirm a sweep, each once, with its largest budget.

    Args:
        settings: The sweep file.
        sweep: Its runs.
        results: The folder results/.

    Raises:
        BadInput: confirm.json is damaged.
    """
    runs: dict[str, Experiment] = {}
    rows = read_confirm(results.sweep(settings.name)) if settings.confirm else []
    for row in rows:
        if row["like"] not in sweep.runs:
            continue  # from an earlier version of the sweep: its winners will be chosen again
        changes = {name: row[name] for name in ("iterations", "evaluations")}
        changes["seed"] = row["values"]["seed"]
        experiment = sweep.runs[row["like"]].model_copy(update=changes)
        known = runs.get(row["id"])
        if known is None or [*known.budget.values()] < [*experiment.budget.values()]:
            runs[row["id"]] = experiment
    return Sweep((), (), runs)
