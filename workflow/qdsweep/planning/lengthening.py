"""Runs whose published files end before the budget that a sweep asks for."""

from collections.abc import Mapping

from qdsweep.files import read_json_if_whole
from qdsweep.records.run_dir import RunDir


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
