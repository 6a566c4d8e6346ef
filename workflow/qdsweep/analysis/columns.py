"""The columns of swept parameters in tables and figures, next to the tables' own columns."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from qdsweep.config.keys import dotted
from qdsweep.config.sweep import TABLE_COLUMNS, Encode, Tables
from qdsweep.metrics import OF_REEVALUATION, OTHER_CODE, PLACES, RESULTS, Metric
from qdsweep.records.paths import Results
from qdsweep.records.plan import Plan
from qdsweep.records.results import read_config

# Parts of a level's name.
PARTS = ("batch", "bracket", "rung", "generation")
# The columns of search.csv before the swept parameters, and behind them.
SEARCH_BEFORE = ("level", *PARTS, "place", "setting")
SEARCH_BEHIND = (
    *("seeds", "budget", "unit", "metric", "score", "rank", "went_on", "parent", "reason"),
    *("why_stopped", "failed", "runs"),
)
# The statistics of a metric in table.csv and in figures, and those that only some metrics have.
STATISTICS = ("mean", "se", "n")
FURTHER = ("median", "iqm", "iqm_low", "iqm_high")
# Further columns of a table of combinations, of groups or of the settings of a search.
OF_COMBINATIONS = ("group",)
OF_SETTINGS = ("group", "setting", "budget", "why")


def own_columns(metrics: Iterable[Metric], *, is_search: bool) -> set[str]:
    """Returns the columns of tables and figures that are no swept parameters.

    Args:
        metrics: Those of the sweep.
        is_search: Whether it has the tables and figures of a search, too.
    """
    metrics = list(metrics)
    summary = {"id", *RESULTS, OTHER_CODE, *TABLE_COLUMNS, *(metric.name for metric in metrics)}
    summary |= {*OF_REEVALUATION, "stochastic"}
    of_groups = {f"{m.column}_{part}" for m in metrics for part in (*STATISTICS, *FURTHER)}
    curves = {f"{m.name}_{part}" for m in metrics for part in STATISTICS}
    curves |= {*PLACES, *(f"{place}_mean" for place in PLACES)}
    search = {*SEARCH_BEFORE, *SEARCH_BEHIND, *OF_SETTINGS} if is_search else set()
    return summary | of_groups | curves | {"runs", *STATISTICS, *OF_COMBINATIONS} | search


def dotted_arguments(plan: Plan, results: Results) -> dict[str, str]:
    """Returns the columns of those arguments that are swept by the name of another column.

    Args:
        plan: The sweep.
        results: The folder results/, where a run shows which part takes the argument.

    Returns:
        Swept parameter -> its dotted path, such as `n` -> `domain.arguments.n`.
    """
    own = own_columns(plan.metrics, is_search=bool(plan.levels))
    searched = plan.candidates[0]["values"] if plan.candidates else {}
    taken = [name for name in dict.fromkeys((*plan.columns, *searched)) if name in own]
    return {name: path for name in taken if (path := _argument(plan, name, results))}


def _argument(plan: Plan, name: str, results: Results) -> str:
    """Returns the dotted path of a swept argument; empty where it is none."""
    for run in map(results.run, _runs_with(plan, name)):
        for file in (run.state.config, run.config):
            if file.exists():
                return next(map(dotted, _arguments(read_config(file), name)), "")
    return ""


def _runs_with(plan: Plan, name: str) -> Iterator[str]:
    """Yields runs that have a value of a swept parameter."""
    yield from (row.run for row in plan.computed if row.values.get(name))
    for candidate in plan.candidates:
        if candidate["values"].get(name, "") != "":
            yield from candidate["runs"].values()


def _arguments(data: Any, name: str, path: tuple[str | int, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields the paths of all arguments of a name in a resolved experiment."""
    if not isinstance(data, dict | list):
        return
    for key, part in data.items() if isinstance(data, dict) else enumerate(data):
        if key == name and path[-1:] == ("arguments",):
            yield (*path, key)
        yield from _arguments(part, name, (*path, key))


def tabled(plan: Plan, results: Results) -> Plan:
    """Returns a plan whose swept parameters have the names of their columns.

    A swept argument with the name of another column has its dotted path. Groups keep their names.

    Args:
        plan: The sweep.
        results: The folder results/.
    """
    columns = dotted_arguments(plan, results)
    if not columns:
        return plan

    def column(name: str) -> str:
        return columns.get(name, name)

    def named(values: Mapping[str, Any]) -> dict[str, Any]:
        return {column(name): value for name, value in values.items()}

    labels = {name: label for name, label in plan.figures.names.items() if label != name}
    own = {*TABLE_COLUMNS, *(metric.name for metric in plan.metrics)}
    shown = [name if name in own else column(name) for name in plan.tables.columns]
    figures = {
        "names": {**{path: path for path in columns.values()}, **named(labels)},
        "encode": Encode(**{key: name and column(name) for key, name in plan.figures.encode}),
        "facets": plan.figures.facets and column(plan.figures.facets),
    }
    return replace(
        plan,
        columns=[*map(column, plan.columns)],
        group_columns=[*map(column, plan.group_columns)],
        rows=[replace(row, values=named(row.values), typed=named(row.typed)) for row in plan.rows],
        figures=plan.figures.model_copy(update=figures),
        tables=Tables(columns=shown),
        slots=named(plan.slots),
    )


def column_names(plan: Plan) -> dict[str, str]:
    """Returns the columns of the swept parameters in summary.csv.

    Of names that are taken, only keys of qdsweep are left, such as the budget: see `tabled`. They
    get the prefix `swept_`.
    """
    again = OF_REEVALUATION if plan.reevaluate else ()
    taken = {"id", "group", *RESULTS, *again, *(metric.name for metric in plan.own)}
    return {name: f"swept_{name}" if name in taken else name for name in plan.columns}
