"""The confirmation of a sweep: its winners run again, with seeds that did not choose them."""

from pathlib import Path
from typing import Any

from qdsweep.config.experiment import Experiment
from qdsweep.config.sweep import SweepFile
from qdsweep.errors import BadInput
from qdsweep.files import read_json
from qdsweep.sweep.runs import Sweep

FILE = "confirm.json"
_KEYS = {"id", "like", "group", "values", "iterations", "evaluations"}


def confirming_rows(sweep_dir: Path) -> list[dict[str, Any]]:
    """The rows of `confirm.json`.

    They are like those of plan.json; `group` is the winner's, and `like` one of its runs in the
    sweep.

    Returns:
        None of them before the winners are known, and of a sweep that is not confirmed.

    Raises:
        BadInput: The file is damaged.
    """
    path = sweep_dir / FILE
    if not path.exists():
        return []
    try:
        rows = list(read_json(path)["rows"])
        if all(row.keys() >= _KEYS for row in rows):
            return rows
    except (KeyError, TypeError, AttributeError):
        pass
    raise BadInput(
        f"{path} is damaged, so the runs that confirm its sweep are not known: remove it and start "
        "snakemake with that sweep, which writes it anew"
    )


def confirming(settings: SweepFile, sweep: Sweep, results: Path) -> Sweep:
    """The runs that confirm a sweep, each once with its largest budget, as far as they are known.

    Args:
        settings: The sweep file.
        sweep: Its runs.
        results: The folder results/.

    Raises:
        BadInput: confirm.json is damaged.
    """
    runs: dict[str, Experiment] = {}
    rows = confirming_rows(results / "sweeps" / settings.name) if settings.confirm else []
    for row in rows:
        if row["like"] not in sweep.runs:
            continue  # of an earlier version of the sweep, whose winners are chosen anew
        changes = {name: row[name] for name in ("iterations", "evaluations")}
        changes["seed"] = row["values"]["seed"]
        experiment = sweep.runs[row["like"]].model_copy(update=changes)
        known = runs.get(row["id"])
        if known is None or [*known.budget.values()] < [*experiment.budget.values()]:
            runs[row["id"]] = experiment
    return Sweep((), (), runs)
