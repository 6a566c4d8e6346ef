"""plan.json: a sweep as the workflow planned it; the rows and the groups that they form.

confirm.json: the runs that confirm a sweep, its winners with held-out seeds.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, NotRequired, TypeVar

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from qdsweep.config.experiment import BUDGETS, Experiment
from qdsweep.config.model import Model, value_text
from qdsweep.config.own_metric import OwnMetric
from qdsweep.config.search import Search
from qdsweep.config.sweep import Confirm, Figures, Published, Reevaluate, Rollouts, Tables
from qdsweep.errors import BadInput
from qdsweep.files import damaged, read_json, write_json, write_text
from qdsweep.metrics import RANK, REEVALUATED, Metric, measures
from qdsweep.records.dependencies import OUTDATED, changed_text
from qdsweep.records.paths import Results, SweepDir
from qdsweep.records.results import write_configs
from qdsweep.records.search_files import Level, levels_of, read_search_rows
from qdsweep.records.sources import keep_sources
from qdsweep.records.sums import read_checked, require_as_written, sums_of
from qdsweep.sweep.groups import brief_names, group_columns, group_labels
from qdsweep.sweep.looks import figure_names, labels_of, slots_of

_Setting = TypeVar("_Setting", bound=Model)

_REMEDY = "start snakemake with that sweep, which writes it again, or remove the file"

_CONFIRM_REMEDY = "remove it, and start snakemake with that sweep, which writes it again"


class RowData(TypedDict):
    """A row of plan.json; keys of other releases are ignored."""

    id: str
    values: dict[str, Any]
    iterations: NotRequired[int | None]
    evaluations: NotRequired[int | None]
    steps: NotRequired[int | None]
    imported: NotRequired[str]


_ROWS = TypeAdapter(list[RowData])


@dataclass(frozen=True)
class PlannedRow:
    """One row of a sweep.

    Attributes:
        values: Its swept values as text.
        run: Its run.
        iterations: Its budget, if that is in iterations.
        evaluations: Its budget, if that is in evaluations.
        steps: Its budget, if that is in environment steps.
        group: Its group.
        typed: Its swept values as they were meant.
        imported: Whether it is an external run, which is not computed here; it has no budget, and
            its swept values are empty where they are unknown.
        fingerprint: That of its experiment; empty where it is unknown.
    """

    values: dict[str, str]
    run: str
    iterations: int | None
    evaluations: int | None
    group: str
    typed: Mapping[str, Any]
    imported: bool = False
    steps: int | None = None
    fingerprint: str = ""


class PlannedRun(NamedTuple):
    """A run that a sweep asks for.

    Attributes:
        id: The run.
        group: Its group, or the one that it confirms, as messages name it.
        unit: Of the budget: iterations, evaluations or steps.
        budget: The largest amount that a row asks for.
        seed: Its swept seed as text; empty where none is swept.
        confirms: Whether it confirms the sweep.
    """

    id: str
    group: str
    unit: str
    budget: int
    seed: str = ""
    confirms: bool = False

    @property
    def label(self) -> str:
        """The swept values: group and seed."""
        return _label(self.group, self.seed) + (" (confirms)" if self.confirms else "")


@dataclass(frozen=True)
class Plan:
    """A sweep as the workflow planned it.

    Attributes:
        name: The sweep's name.
        experiment: The experiment that is swept.
        sweep: The text of the sweep grammar.
        columns: Names of the swept values.
        group_columns: Those that distinguish groups: all but `seed` and a constant budget.
        rows: In the order of the sweep.
        figures: The key of the sweep file, as those that follow.
        reevaluate: None: not to be done.
        rollouts: None: not to be made.
        confirm: None: not to be done.
        published: In the order of the sweep file.
        rank: The metric that groups are ranked by.
        tests: The key of the sweep file, as the next one.
        compare_at: None: each run at its own budget.
        untested: Group -> why no test, bold or claim has it.
        own: The user's metrics.
        slots: The values of each of `group_columns`, in the order of their colours; see
            `slots_of`.
        tables: The key of the sweep file.
        search: The key of the sweep file, where the runs of a search are chosen on the way; else
            None. The rows are then those of search.json.
        levels: The levels of that search.
        unit: The unit of their budgets.
        candidates: Its settings that were known beforehand, each with `values` and `runs`.
        base: The experiment that is swept; settings that a search finds are composed of it.
        titles: Swept algorithm -> the title in its preset, where it has one.
        sources: The code of the user's metrics at the last start; see `sources_of`.
        best_ever: Whether an archive of it may lose its best elite.
        outdated: Run that used other files than there are now -> these files.
        noise: Scale -> whether evaluations depend on their seed, where tables are made: see
            `analysis.noise`.
    """

    name: str
    experiment: str
    sweep: str
    columns: list[str]
    group_columns: list[str]
    rows: list[PlannedRow]
    figures: Figures = field(default_factory=Figures)
    reevaluate: Reevaluate | None = None
    rollouts: Rollouts | None = None
    confirm: Confirm | None = None
    published: list[Published] = field(default_factory=list)
    rank: Metric = RANK
    tests: str = "welch"
    compare_at: str | None = None
    untested: Mapping[str, str] = field(default_factory=dict)
    own: tuple[Metric, ...] = ()
    slots: dict[str, list[str]] = field(default_factory=dict)
    tables: Tables = field(default_factory=Tables)
    search: Search | None = None
    levels: tuple[Level, ...] = ()
    unit: str = BUDGETS[0]
    candidates: Sequence[Mapping[str, Any]] = ()
    base: str | Mapping[str, Any] = ""
    titles: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    best_ever: bool = False
    outdated: Mapping[str, Sequence[str]] = field(default_factory=dict)
    noise: Mapping[str, str] = field(default_factory=dict)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of its runs: ours, then the user's."""
        first = REEVALUATED if self.reevaluate else ()
        return (*first, *measures(best_ever=self.best_ever), *self.own)

    @property
    def counted(self) -> str:
        """What its runs are compared at equal numbers of: steps where all budgets are in them."""
        own = "evaluations" if any(row.steps is None for row in self.rows) else "steps"
        return self.compare_at or own

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Plan":
        """Returns the plan of plain data, from `Sweep.plan` or plan.json.

        Keys of other releases are passed over.

        Raises:
            KeyError, TypeError, ValueError: They are not those of a plan.
        """
        columns, planned = list(data["columns"]), _ROWS.validate_python(data["rows"])
        values = [{name: value_text(row["values"][name]) for name in columns} for row in planned]
        experiment, known = data.get("experiment", ""), data.get("fingerprints", {})
        own_values = [
            texts for row, texts in zip(planned, values, strict=True) if "imported" not in row
        ]
        own_labels = iter(group_labels(columns, own_values, experiment))
        labels = [row["imported"] if "imported" in row else next(own_labels) for row in planned]
        rows = [
            PlannedRow(
                values=texts,
                run=row["id"],
                iterations=row.get("iterations"),
                evaluations=row.get("evaluations"),
                group=label,
                typed=row["values"],
                imported="imported" in row,
                steps=row.get("steps"),
                fingerprint=known.get(row["id"], ""),
            )
            for row, texts, label in zip(planned, values, labels, strict=True)
        ]
        best_ever = bool(data.get("best_ever"))
        ours = measures(best_ever=best_ever)
        own = tuple(
            OwnMetric.model_validate_json(json.dumps(metric)).metric
            for metric in data.get("metrics") or ()
        )
        return cls(
            name=data["name"],
            experiment=experiment,
            sweep=data.get("sweep", ""),
            columns=columns,
            group_columns=group_columns(columns, own_values),
            rows=rows,
            figures=_setting(Figures, data.get("figures")) or Figures(),
            reevaluate=_reevaluate(data.get("reevaluate")),
            rollouts=_setting(Rollouts, data.get("rollouts")),
            confirm=_setting(Confirm, data.get("confirm")),
            published=[
                Published.model_validate_json(json.dumps(result))
                for result in data.get("published") or ()
            ],
            rank={metric.name: metric for metric in (*REEVALUATED, *ours, *own)}[
                data.get("rank", RANK.name)
            ],
            tests=data.get("tests", "welch"),
            compare_at=data.get("compare_at"),
            untested=_outdated_groups(rows, data) | data.get("untested", {}),
            own=own,
            slots=slots_of(columns, own_values) | dict(data.get("slots", {})),
            tables=_setting(Tables, data.get("tables")) or Tables(),
            search=_setting(Search, data.get("search")) if "levels" in data else None,
            levels=levels_of(data),
            unit=data.get("unit", BUDGETS[0]),
            candidates=data.get("candidates", ()),
            base=data.get("base", ""),
            titles=data.get("titles", {}),
            sources=data.get("sources", {}),
            best_ever=best_ever,
            outdated=data.get("outdated", {}),
        )

    @property
    def decider(self) -> Metric:
        """The metric by which a search decides."""
        name = (self.search and self.search.metric) or self.rank.name
        return next(metric for metric in self.metrics if metric.name == name)

    def called(self, name: str) -> str:
        """Returns the name of a swept parameter in the report."""
        return self.figures.names.get(name, name)

    @property
    def names(self) -> dict[str, str]:
        """Swept parameter -> its name in labels of groups."""
        return {**brief_names(self.columns), **self.figures.names}

    @property
    def labels(self) -> dict[str, str]:
        """Group, or swept value -> what the report calls it."""
        return labels_of(self.figures, self.titles)

    @property
    def computed(self) -> list[PlannedRow]:
        """The rows of its own runs, which are computed here."""
        return [row for row in self.rows if not row.imported]

    @cached_property
    def _labels(self) -> dict[str, str]:
        """Group -> what `figures` calls it, unless only a figure can show that."""
        firsts = {row.group: row.values for row in reversed(self.computed)}
        rows = [firsts[group] for group in dict.fromkeys(row.group for row in self.computed)]
        try:
            names = figure_names(self.figures, self.columns, rows, self.experiment)
        except BadInput:  # a start and each table report it; a list of runs does not need it
            return {}
        return {group: name.label for group, name in names.items() if "$" not in name.label}

    def label(self, row: PlannedRow) -> str:
        """Returns the swept values for a reader: group and seed."""
        return _label(self._labels.get(row.group, row.group), row.values.get("seed", ""))

    @property
    def imported_groups(self) -> set[str]:
        """The groups of external runs."""
        return {row.group for row in self.rows if row.imported}

    @property
    def outdated_groups(self) -> set[str]:
        """The groups with an outdated run."""
        return {row.group for row in self.rows if row.run in self.outdated}

    @property
    def groups(self) -> dict[str, list[PlannedRow]]:
        """The rows of each group, in the order of the sweep."""
        groups: dict[str, list[PlannedRow]] = {}
        for row in self.rows:
            groups.setdefault(row.group, []).append(row)
        return groups

    def runs(self, confirming: Iterable[Mapping[str, Any]] = ()) -> list[PlannedRun]:
        """Returns each run that the sweep asks for once, with the largest budget of its rows.

        Args:
            confirming: The rows of confirm.json; those of an earlier version of the sweep, whose
                winners are chosen again, are ignored.
        """
        runs: dict[str, PlannedRun] = {}
        for row in self.computed:
            seed = row.values.get("seed", "")
            group = self._labels.get(row.group, row.group)
            _keep_longest(runs, PlannedRun(row.run, group, *_budget(vars(row)), seed))
        for data in confirming:
            if data["like"] in runs and not runs[data["like"]].confirms:
                seed = str(data["values"]["seed"])
                group = self._labels.get(data["group"], data["group"])
                _keep_longest(runs, PlannedRun(data["id"], group, *_budget(data), seed, True))
        return list(runs.values())


def _outdated_groups(rows: Iterable[PlannedRow], data: Mapping[str, Any]) -> dict[str, str]:
    """Returns why no test has the groups with outdated runs."""
    files = data.get(OUTDATED, {})
    own = [row for row in rows if row.run in files]
    return {row.group: f"{OUTDATED}: {changed_text(files[row.run])}" for row in own}


def _label(group: str, seed: str) -> str:
    return f"{group}, seed {seed}" if seed else group


def _keep_longest(runs: dict[str, PlannedRun], run: PlannedRun) -> None:
    known = runs.setdefault(run.id, run)
    if known.budget < run.budget:
        runs[run.id] = known._replace(budget=run.budget)


def _budget(row: Mapping[str, Any]) -> tuple[str, int]:
    """The unit and the amount of a row's budget."""
    return next(((unit, row[unit]) for unit in BUDGETS if row.get(unit)), (BUDGETS[0], 0))


def _setting(model: type[_Setting], data: Mapping[str, Any] | None) -> _Setting | None:
    if data is None:
        return None
    known = {key: data[key] for key in data if key in model.model_fields}
    return model.model_validate_json(json.dumps(known))


def _reevaluate(data: Mapping[str, Any] | None) -> Reevaluate | None:
    """Returns the key `reevaluate`; in earlier releases, all runs had common fresh seeds."""
    return _setting(Reevaluate, None if data is None else {"common": True, **data})


def read_plan(sweep: SweepDir, run: str = "") -> Plan:
    """Reads the plan of a sweep.

    Args:
        sweep: The sweep's folder.
        run: Only the rows of this run, which is quick in a large sweep; empty: all rows.

    Raises:
        BadInput: There is no such sweep (the message lists those that there are), or its plan is
            damaged.
    """
    return plan_of(read_plan_data(sweep), sweep, run)


def plan_of(data: dict[str, Any], sweep: SweepDir, run: str = "") -> Plan:
    """Returns the plan of the plain data that `read_plan_data` has read.

    Args:
        data: The data; with `run`, it keeps only the rows of that run.
        sweep: The sweep's folder, for messages.
        run: See `read_plan`.

    Raises:
        BadInput: The data are damaged.
    """
    try:
        if run:
            data["rows"] = [row for row in data["rows"] if row["id"] == run]
        return Plan.of(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damaged(sweep.plan, error, _REMEDY) from None


def read_plan_data(sweep: SweepDir) -> dict[str, Any]:
    """Reads plan.json of a sweep, with the rows that its search has found, as plain data.

    Raises:
        BadInput: See `read_plan`.
    """
    if not sweep.plan.exists():
        known = ", ".join(sorted(other.name for other in sweep.results.known_sweeps())) or "none"
        raise BadInput(
            f"{sweep.plan} does not exist: there is no started sweep of this name; known sweeps "
            f"in {sweep.results.path.absolute()}: {known}"
        )
    data = read_checked(sweep.plan, cure=_REMEDY)
    if "levels" in data:
        data["rows"] = read_search_rows(sweep)
    return data


def write_plan(plan: Mapping[str, Any], runs: Mapping[str, Experiment], results: Results) -> None:
    """Writes `sweeps/NAME/plan.json`, and `runs/ID/state/config.yaml` of runs that have none.

    The user's code is kept, too.

    Args:
        plan: From `Sweep.plan`.
        runs: Run id -> experiment.
        results: The folder results/.
    """
    keep_sources(runs.values(), results)
    sweep = results.sweep(plan["name"])
    plan = {**plan, **_kept_slots(plan, sweep)}
    text = json.dumps(plan, indent=1) + "\n"
    changed = not sweep.plan.exists() or sweep.plan.read_bytes() != text.encode()
    write_configs(runs, results, changed=changed)
    if changed:
        sums = sweep.sums("plan")
        sums.parent.mkdir(parents=True, exist_ok=True)
        sums.unlink(missing_ok=True)
        write_text(sweep.plan, text)
        write_text(sums, sums_of(sweep.path, [sweep.plan]))
    else:
        with contextlib.suppress(OSError):  # it is another user's
            os.utime(sweep.plan)  # the newest plan is that of the last start


def _kept_slots(plan: Mapping[str, Any], sweep: SweepDir) -> dict[str, Any]:
    """Returns the key `slots` where an earlier start of the sweep has given other ones."""
    try:
        before = read_plan(sweep).slots
    except BadInput:  # there was none
        return {}
    now = Plan.of(plan)
    slots = slots_of(now.columns, [row.values for row in now.computed], before)
    return {} if slots == now.slots else {"slots": slots}


def digest(plan: Mapping[str, Any]) -> str:
    """Returns text that changes whenever the tables of the sweep must be rebuilt."""
    shown = {key: value for key, value in plan.items() if key != "fingerprints"}
    return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()[:16]


class ConfirmingRow(RowData):
    """A row of confirm.json: like one of plan.json, of a seed that did not choose the winner.

    Attributes:
        like: A run of the winner in the sweep.
        group: The winner.
    """

    like: str
    group: str


def planned_row(row: ConfirmingRow) -> PlannedRow:
    """Returns what a row of confirm.json asks for."""
    return PlannedRow(
        values={},
        run=row["id"],
        iterations=row["iterations"],
        evaluations=row["evaluations"],
        group=row["group"],
        typed={},
        steps=row.get("steps"),
    )


_CONFIRM_ROWS = TypeAdapter(list[ConfirmingRow])


def read_confirm(sweep: SweepDir) -> list[ConfirmingRow]:
    """Reads the rows of confirm.json.

    Returns:
        None of them before the winners are known, and of a sweep that is not confirmed.

    Raises:
        BadInput: The file is damaged.
    """
    if not sweep.confirm.exists():
        return []
    require_as_written(sweep.confirm, _CONFIRM_REMEDY, sweep.sums("winners"))
    data = read_json(sweep.confirm, cure=_CONFIRM_REMEDY)
    try:
        rows = _CONFIRM_ROWS.validate_python(data["rows"])
        for row in rows:
            int(row["values"]["seed"])
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(sweep.confirm, error, _CONFIRM_REMEDY) from None
    return rows


def write_confirm(sweep: SweepDir, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes confirm.json."""
    write_json(sweep.confirm, {"rows": rows})
