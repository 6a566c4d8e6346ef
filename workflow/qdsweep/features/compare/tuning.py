"""What a sweep spent on the choice among settings, and the runs by which it chose.

A group that was chosen by its own runs has too high a mean there (Cawley and Talbot 2010, JMLR
11:2079-2107). The winner of 27 equal settings, chosen by five seeds and then tested on these
against a group that was not tuned, is "significantly higher" in 19 % instead of 2.5 %.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from qdsweep.config.experiment import BUDGETS
from qdsweep.records.plan import Plan
from qdsweep.search.levels import count_candidates, search_cost
from qdsweep.text import listed, number, plural

TUNED = "tuned on these seeds"


class Tuning(NamedTuple):
    """The choice among the settings of a sweep.

    Attributes:
        text: Its cost, and the number of settings.
        runs: The ids of the runs by which it chose.
    """

    text: str
    runs: set[str]


def tuning_of(plan: Plan, data: Mapping[str, Any]) -> Tuning | None:
    """Returns the choice of a sweep with a search; None where there was nothing to choose.

    Args:
        plan: The sweep.
        data: plan.json as plain data, whose rows are those of `plan`.
    """
    return choice_in(plan) if data.get("search") else None


def choice_in(plan: Plan) -> Tuning | None:
    """Returns the choice among all settings of a sweep; None where it has fewer than two."""
    runs = {row.run for row in plan.computed}
    if plan.levels:
        count, cost = count_candidates(plan.levels), Counter({plan.unit: search_cost(plan.levels)})
        runs |= {run for candidate in plan.candidates for run in candidate["runs"].values()}
    else:
        count, cost = len({row.group for row in plan.computed}), Counter[str]()
        for run in plan.runs():
            cost[run.unit] += run.budget
    if count < 2:
        return None
    spent = listed([f"{number(cost[unit])} {unit}" for unit in BUDGETS if cost[unit]])
    return Tuning(f"{spent} for {plural(count, 'setting')}", runs)
