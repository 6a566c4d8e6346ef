"""The confirmation of a sweep: its winners run again, with seeds that did not choose them."""

from qdsweep.config.compose import compose
from qdsweep.config.experiment import BUDGETS, Experiment
from qdsweep.config.sweep import SweepFile
from qdsweep.records.confirm import read_confirm
from qdsweep.records.search import read_search_rows
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
    folder = results.sweep(settings.name)
    rows = read_confirm(folder) if settings.confirm else []
    found = {row["id"] for row in read_search_rows(folder)} if settings.staged_search else set()
    for row in rows:
        like = sweep.runs.get(row["like"])
        if like is None and row["like"] in found:  # a search has met it on its way
            like = compose(str(results.run(row["like"]).state.config))
        if like is None:
            continue  # from an earlier version of the sweep: its winners will be chosen again
        changes = {name: row.get(name) for name in BUDGETS}
        changes["seed"] = row["values"]["seed"]
        experiment = like.model_copy(update=changes)
        known = runs.get(row["id"])
        if known is None or [*known.budget.values()] < [*experiment.budget.values()]:
            runs[row["id"]] = experiment
    return Sweep((), (), runs)
