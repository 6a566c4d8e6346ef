"""Several sweeps as one plan, in which a run that they share is there once.

Nothing heavy is imported: the stages that read the plan set the CPU settings of numpy first.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, reduce
from hashlib import sha256
from itertools import islice
from operator import getitem
from typing import Any, NamedTuple

from qdsweep.config.compose import compose
from qdsweep.config.experiment import BUDGETS, Experiment
from qdsweep.config.family import FORMER, name_now
from qdsweep.config.keys import Path, key_paths, resolve
from qdsweep.config.model import value_text
from qdsweep.config.own_code import source_paths
from qdsweep.config.source import file_hash
from qdsweep.config.sweep import Figures
from qdsweep.errors import BadInput
from qdsweep.features.compare.tuning import TUNED, Tuning, tuning_of
from qdsweep.files import read_json_if_whole
from qdsweep.records.paths import Results, RunDir, SweepDir, is_imported
from qdsweep.records.plan import (
    Plan,
    PlannedRow,
    plan_of,
    planned_row,
    read_confirm,
    read_plan_data,
)
from qdsweep.records.progress import OtherCode
from qdsweep.records.sources import code_of_run, form_in
from qdsweep.records.status import read_status
from qdsweep.sweep.groups import OF_SWEEPS, UNGROUPED
from qdsweep.sweep.ids import identify
from qdsweep.sweep.looks import encoding, values_of
from qdsweep.text import listed, plural


class Merged(NamedTuple):
    """Several sweeps as one.

    Attributes:
        plan: Its plan as plain data, as in plan.json.
        runs: Name of each sweep -> its finished runs.
        notes: Sentences on unfinished runs, shared runs and ranks.
    """

    plan: dict[str, Any]
    runs: dict[str, set[str]]
    notes: list[str]


@dataclass
class _Group:
    """A group of one sweep or of several.

    Attributes:
        sweeps: The names of its sweeps.
        title: The name of the experiment that was swept.
        experiment: The experiment of its first run; None where it cannot be read.
        settings: Equal for groups of two sweeps that are one group.
        rows: Its rows, as in plan.json.
        untested: Why it is not tested; empty where it is.
    """

    sweeps: list[str]
    title: str
    experiment: Experiment | None
    settings: tuple[Any, ...]
    rows: list[dict[str, Any]]
    untested: str = ""

    def value(self, name: str) -> Any:
        """Returns the value of a swept parameter: of the sweep, or else of the experiment.

        It is empty where the experiment has no such key, or leaves it to the domain.
        """
        row = self.rows[0]
        if name in row["values"] or self.experiment is None:
            return row["values"].get(name, "")
        if name == "experiment":
            return self.title
        if name in ("algorithm", "domain"):
            return getattr(self.experiment, name).name
        path = self.path(name)
        if not path:
            return ""
        # The budget in the experiment is the largest of all sweeps.
        with suppress(KeyError):  # an argument of the user's class that this experiment leaves out
            value = row.get(path[0]) if path[0] in BUDGETS else reduce(getitem, path, self._data)
            return "" if value is None else value
        return ""

    def path(self, name: str) -> Path:
        """Returns the key of a swept parameter; nothing where the experiment has no such key."""
        try:
            return resolve(name, self._paths, "")
        except BadInput:
            return ()

    @cached_property
    def _data(self) -> Any:
        return self.experiment.model_dump(mode="json") if self.experiment else {}

    @cached_property
    def _paths(self) -> list[tuple[Path, Any]]:
        return list(key_paths(Experiment, self._data)) if self.experiment else []


def merge_sweeps(results: Results, names: Sequence[str]) -> Merged:
    """Merges the finished runs of sweeps.

    Groups of two sweeps are one group if their runs of the same seed are, or would be, the same
    run at the same budget. The value of a parameter that only another sweep swept is that of the
    experiment. If two groups would still have one name, the name of the experiment is a swept
    parameter, too, and then the name of the sweep. Ranks, labels and colours are those of the
    first sweep, as far as it has some.

    Runs by which a search chose among settings are left out where a group has others, such as
    those of `confirm`. Else the group is not tested.

    Args:
        results: The folder results/.
        names: The sweeps.

    Raises:
        BadInput: There is only one sweep, or one is unknown or has no finished run, or two have
            different metrics of one name.
    """
    names = list(dict.fromkeys(names))
    if len(names) < 2:
        raise BadInput(f"{names[0]}: give two or more different sweeps")
    plans, runs, notes = [], {}, []
    metrics: dict[str, Any] = {}
    columns: dict[Path, str] = {}
    groups: list[_Group] = []
    chosen: dict[str, Tuning] = {}
    for name in names:
        data = read_plan_data(results.sweep(name))
        plan = plan_of(data, results.sweep(name))
        own = list(_groups_of(plan, data["rows"], results))
        runs[name] = {row["id"] for group in own for row in group.rows}
        if not own:
            raise BadInput(
                f"the sweep {name} has no finished run; `qdsweep status {name}` lists its runs"
            )
        if unfinished := {row.run for row in plan.rows} - runs[name]:
            total = plural(len(runs[name] | unfinished), "run")
            notes.append(f"{name}: {len(runs[name])} of {total} are finished.")
        for metric, about in zip(plan.own, data.get("metrics") or (), strict=True):
            if metrics.setdefault(metric.name, about) != about:
                raise BadInput(
                    f"metrics: {metric.name} of the sweep {name} is another metric than in the "
                    "sweeps before it, so they cannot be compared"
                )
        plans.append(plan)
        if tuning := tuning_of(plan, data):
            chosen[name] = tuning
            runs[name] |= _add_held_out(own, results.sweep(name))
        _rename(own, columns)
        _add(own, groups)
    counts = Counter(run for of_sweep in runs.values() for run in of_sweep)
    if shared := sum(count > 1 for count in counts.values()):
        notes.append(f"Shared by several sweeps, and counted once: {plural(shared, 'run')}.")
    if len({plan.rank for plan in plans}) > 1:
        notes.append(f"Groups are ranked by the {plans[0].rank.phrase}, as in {names[0]}.")
    notes += _leave_out(groups, runs, chosen)
    data = _plan(plans, groups) | {"metrics": list(metrics.values())}
    if outdated := dict(_outdated(groups, results)):
        data["outdated"] = outdated
    return Merged(data, runs, notes)


def _outdated(groups: list[_Group], results: Results) -> Iterator[tuple[str, list[str]]]:
    """Yields the runs that used other files than there are now, and these files."""
    code = OtherCode(results)
    for group in groups:
        for row in group.rows if group.experiment and group.experiment.has_own_modules else ():
            run = results.run(row["id"])
            if files := code.outdated(run, read_status(run.state).code):
                yield run.name, list(files)


def _add_held_out(groups: list[_Group], sweep: SweepDir) -> set[str]:
    """Adds the finished runs that confirm groups of a sweep, and returns their ids."""
    group_of = {row["id"]: group for group in groups for row in group.rows}
    added = set()
    for row in read_confirm(sweep):
        if row["like"] in group_of and is_finished(sweep.results, planned_row(row)):
            like = next(r for r in group_of[row["like"]].rows if r["id"] == row["like"])
            values = {**like["values"], "seed": row["values"]["seed"]}
            group_of[row["like"]].rows.append({**like, "id": row["id"], "values": values})
            added.add(row["id"])
    return added


def _leave_out(
    groups: list[_Group], runs: dict[str, set[str]], chosen: dict[str, Tuning]
) -> list[str]:
    """Leaves out the runs by which searches chose, and returns sentences on that.

    Args:
        groups: All groups.
        runs: Name of each sweep -> its runs.
        chosen: Name of each sweep with a search -> what that cost.
    """
    if not chosen:
        return []
    seen = set().union(*(tuning.runs for tuning in chosen.values()))
    left_out = set()
    for group in groups:
        fresh = [row for row in group.rows if row["id"] not in seen]
        if not fresh:
            group.untested = TUNED
            continue
        left_out |= {row["id"] for row in group.rows} - {row["id"] for row in fresh}
        group.rows = fresh
    for name in runs:
        runs[name] -= left_out
    costs = [f"{chosen[name].text if name in chosen else 0} ({name})" for name in runs]
    notes = [f"Tuning budget: {listed(costs)}."]
    if left_out:
        notes.append(
            f"Left out: {plural(len(left_out), 'run')} on seeds by which a search chose. Runs on"
            " other seeds represent their settings."
        )
    return notes


def _groups_of(plan: Plan, rows: Sequence[dict[str, Any]], results: Results) -> Iterator[_Group]:
    """Yields the groups of a sweep with their finished runs; `rows` are those of plan.json."""
    finished: dict[str, list[dict[str, Any]]] = {}
    for row, about in zip(plan.rows, rows, strict=True):
        if is_finished(results, row):
            finished.setdefault(row.group, []).append({**about, "values": dict(about["values"])})
    for members in finished.values():
        first = members[0]
        experiment, like = _settings(results.run(first["id"]), results)
        settings = (like, *(first.get(unit) for unit in BUDGETS))
        now = experiment.algorithm.name if experiment else ""
        if now in FORMER and first["values"].get("algorithm") == FORMER[now].name:
            for member in members:
                member["values"]["algorithm"] = now
        yield _Group([plan.name], plan.experiment, experiment, settings, members)


def is_finished(results: Results, row: PlannedRow) -> bool:
    """Returns whether the run of a row has reached its budget."""
    run = results.run(row.run)
    if row.imported or not run.summary.exists():
        return run.summary.exists()
    summary = read_json_if_whole(run.summary)
    return all((summary.get(unit) or 0) >= (getattr(row, unit) or 0) for unit in BUDGETS)


def _settings(run: RunDir, results: Results) -> tuple[Experiment | None, str]:
    """Returns the experiment of a run, and the id that its run with the seed 0 would have.

    The user's code is that of the run. If it is lost, or the experiment is, this id is unique.
    """
    if is_imported(run.name):
        return None, run.name
    try:
        experiment = compose(str(run.config))
    except BadInput:
        return None, run.name
    if experiment.domain.former is not None:
        with suppress(BadInput):  # the user's code is lost
            experiment, _ = form_in(experiment, run)
    algorithm = experiment.algorithm
    title = algorithm.title if "title" in algorithm.model_fields_set else None
    now = {"name": name_now(algorithm.name, title)}
    experiment = experiment.model_copy(update={"algorithm": algorithm.model_copy(update=now)})
    files = code_of_run(run.name, experiment, results) if experiment.plugins else {}

    def source(target: str) -> str:
        texts = (files[name] for name in source_paths(target) if name in files)
        return file_hash(next(texts, run.name.encode()))

    return experiment, identify(experiment.model_copy(update={"seed": 0}), source).id


def _rename(groups: list[_Group], columns: dict[Path, str]) -> None:
    """Names the swept parameters of a sweep as earlier sweeps name the same keys.

    Args:
        groups: The groups of the sweep.
        columns: Key -> the swept parameter of an earlier sweep. Those of this sweep are added.
    """
    own = list(groups[0].rows[0]["values"])
    kinds = {group.settings[0].rsplit("-", 2)[0]: group for group in groups}  # domain, algorithm
    keys = [(name, path) for name in own for g in kinds.values() if (path := g.path(name))]
    other = {name: columns[path] for name, path in keys if columns.get(path, name) not in own}
    for name, path in keys:
        columns.setdefault(path, other.get(name, name))
    for group in groups:
        for row in group.rows:
            row["values"] = {other.get(name, name): value for name, value in row["values"].items()}
            if group.experiment is not None:
                row["values"].setdefault("seed", group.experiment.seed)


def _add(added: list[_Group], groups: list[_Group]) -> None:
    """Adds the groups of a sweep to those of earlier sweeps."""
    known: dict[tuple[Any, ...], list[_Group]] = {}
    for group in groups:
        known.setdefault(group.settings, []).append(group)
    for group in added:
        same = known.get(group.settings)
        if same is None:
            groups.append(group)
            continue
        # One sweep may have several names for equal settings.
        names = {*group.rows[0]["values"]} - {*UNGROUPED}
        best = min(same, key=lambda other: sum(other.value(n) != group.value(n) for n in names))
        there = {row["id"] for row in best.rows}
        best.sweeps = list(dict.fromkeys([*best.sweeps, *group.sweeps]))
        best.rows += [row for row in group.rows if row["id"] not in there]


def _plan(plans: list[Plan], groups: list[_Group]) -> dict[str, Any]:
    """Returns the plan of the merged groups as plain data, without the users' metrics."""
    data: dict[str, Any] = {
        "name": _name([plan.name for plan in plans]),
        "experiment": plans[0].experiment,
        "columns": list(
            dict.fromkeys(name for group in groups for name in group.rows[0]["values"])
        ),
        "rows": [row for group in groups for row in group.rows],
        "titles": {
            name_now(name, title): title
            for plan in reversed(plans)
            for name, title in plan.titles.items()
        },
    }
    _fill(groups, data["columns"])
    for name in ("experiment", OF_SWEEPS):
        if len(Plan.of(data).groups) == len(groups):
            break
        if name in data["columns"]:
            continue
        data["columns"].insert(0, name)
        for group in groups:
            value = " + ".join(group.sweeps) if name == OF_SWEEPS else group.title
            for row in group.rows:
                row["values"][name] = value
                if name == OF_SWEEPS and "imported" in row:
                    row["imported"] = f"sweep {value}, {row['imported']}"
    labels = (row.group for row in Plan.of(data).rows)
    firsts = [next(islice(labels, len(group.rows) - 1, None)) for group in groups]
    if untested := {
        label: group.untested for label, group in zip(firsts, groups, strict=True) if group.untested
    }:
        data["untested"] = untested
    if any(plan.best_ever for plan in plans):
        data["best_ever"] = True
    again = [plan.reevaluate for plan in plans]
    if again[0] is not None and again.count(again[0]) == len(again):
        data["reevaluate"] = again[0].model_dump()
    figures = _figures(plans, Plan.of(data))
    return {**data, "rank": plans[0].rank.name, "figures": figures}


def _name(names: list[str]) -> str:
    """Returns the name of the merged sweep; a folder's name must not be longer."""
    name = "+".join(names)
    return name if len(name) <= 200 else f"{name[:190]}-{sha256(name.encode()).hexdigest()[:8]}"


def _fill(groups: list[_Group], columns: list[str]) -> None:
    """Gives each row a value of each swept parameter; equal numbers are written alike."""
    known: dict[tuple[str, Any], Any] = {}
    for group in groups:
        values = {}
        for name in columns:
            value = group.value(name)
            key = value if type(value) in (int, float) else value_text(value)
            values[name] = known.setdefault((name, key), value)
        for row in group.rows:
            own = {name: row["values"].get(name, "") for name in columns if name in UNGROUPED}
            row["values"] = values | own


def _figures(plans: list[Plan], merged: Plan) -> dict[str, Any]:
    """Returns the look of figures: that of the first sweep, and labels and colours of all."""
    rows = [row.values for row in merged.computed]
    values = {row[name] for row in rows for name in merged.group_columns}
    color = encoding(Figures(), merged.columns, rows).color
    known = {
        "labels": {*merged.groups, *values},
        "names": {*merged.group_columns},
        "colors": {*values_of(rows, color)} if color else {},
    }
    kept = {"band", "column_width", "color_range"}
    figures: dict[str, Any] = plans[0].figures.model_dump(mode="json", include=kept)
    for key, names in known.items():
        chosen: dict[str, str] = {}
        for name, text in (item for p in plans for item in getattr(p.figures, key).items()):
            if name in names and text not in chosen.values():
                chosen.setdefault(name, text)
        figures[key] = chosen
    return figures
