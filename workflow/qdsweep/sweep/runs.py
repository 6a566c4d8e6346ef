"""The table of runs: a sweep's rows, each with its experiment and its run.

The key `exclude: ["NAME=VALUE,..."]` removes rows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

from qdsweep.config.compose import compose
from qdsweep.config.experiment import SEEDS, Experiment
from qdsweep.config.keys import column_of, dotted, key_paths, resolve
from qdsweep.config.model import same_value, typed, value_text
from qdsweep.config.own_metric import OwnMetric, own_metrics
from qdsweep.errors import BadInput
from qdsweep.host.machine import require_memory
from qdsweep.sweep.drawn import SAMPLE
from qdsweep.sweep.grammar import Draw, Table, expand
from qdsweep.sweep.groups import CHANGES, MEMBER, OF_SWEEPS
from qdsweep.sweep.ids import Identity, identify
from qdsweep.text import nearest

_Value = TypeVar("_Value")

# The smallest memory of a row, whose experiment and Snakemake job need more [B].
_RUN = 2000


class External(Protocol):
    """A run that was computed elsewhere."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of its description and its data [hex]."""

    @property
    def files(self) -> list[Path]:
        """All files that it is made of."""

    def row(self, columns: tuple[str, ...]) -> dict[str, Any]:
        """Returns its row of a sweep with these swept parameters, as plain data of plan.json."""


def remaining(
    rows: Sequence[Mapping[str, str]], columns: Sequence[str], excluded: Sequence[str]
) -> Iterator[int]:
    """Finds the rows that match no exclusion.

    Args:
        rows: The rows, name -> value as written.
        columns: The names.
        excluded: Lists of `NAME=VALUE`. A row that has all values of a list is excluded.

    Yields:
        The indices of the remaining rows.

    Raises:
        BadInput: A list has another form, names no column or excludes no row; or no row remains.
    """
    named: set[int] = set()
    for number, entry in enumerate(excluded, start=1):
        pairs = _pairs(entry, number, columns)
        places = {
            place
            for place, row in enumerate(rows)
            if all(same_value(typed(row[name]), value) for name, value in pairs.items())
        }
        if not places:
            raise BadInput(
                f"exclude, entry {number}: no row of the sweep has {entry}; fix or remove the entry"
            )
        named |= places
    if len(named) == len(rows):
        raise BadInput("exclude: no row of the sweep remains")
    yield from (place for place in range(len(rows)) if place not in named)


def _pairs(entry: str, number: int, columns: Sequence[str]) -> dict[str, object]:
    pairs: dict[str, object] = {}
    for part in entry.split(","):
        name, sign, value = (word.strip() for word in part.partition("="))
        name = column_of(name, columns)
        near = "" if name in columns else nearest(name, columns)
        if not sign or name not in columns:
            raise BadInput(
                f"exclude, entry {number}: {part!r}: {near}write NAME=VALUE,... with "
                f"swept parameters ({', '.join(columns)})"
            )
        pairs[name] = typed(value)
    return pairs


@dataclass(frozen=True)
class Row:
    """One row of a sweep: its typed values, and the run that they request."""

    values: dict[str, Any]
    id: str
    experiment: Experiment


@dataclass(frozen=True)
class Sweep:
    """A sweep's rows and its distinct runs."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    runs: dict[str, Experiment]
    """Run id -> its experiment, with the largest budget of its rows."""
    unpaired: tuple[str, ...] = ()
    """One line per linked source about the values that it drops."""
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    """Run id -> the fingerprint of its experiment."""
    imported: tuple[External, ...] = ()
    """External runs, which tables and figures show together with the sweep's runs."""

    @cached_property
    def settings(self) -> dict[str, Experiment]:
        """The first run of each setting."""
        return dict(next(iter(alike.items())) for alike in by_setting(self.runs))

    @cached_property
    def texts(self) -> list[dict[str, str]]:
        """The swept values of each row, in the form that a user types."""
        return [
            {name: value_text(value) for name, value in row.values.items()} for row in self.rows
        ]

    @property
    def duplicates(self) -> int:
        """Number of rows that request the run and the budget of an earlier row."""
        asked = {(row.id, *row.experiment.budget.items()) for row in self.rows}
        return len(self.rows) - len(asked)

    @property
    def own_metrics(self) -> dict[str, OwnMetric]:
        """The user's metrics of its runs, by their columns.

        Raises:
            BadInput: Two runs have different metrics of one name, or the metrics are swept.
        """
        for row in self.rows:
            if row.experiment.metrics != self.runs[row.id].metrics:
                raise BadInput(
                    "metrics cannot be swept, because they change no result. List all metrics in "
                    "the experiment, and every run has them"
                )
        by_column: dict[str, OwnMetric] = {}
        for experiment in self.runs.values():
            for metric in own_metrics(experiment.metrics):
                if by_column.setdefault(metric.column, metric) != metric:
                    raise BadInput(
                        f"metrics: {metric.column} names different metrics in different runs of "
                        "the sweep. Give one of them another name"
                    )
        return by_column

    def plan(self, **about: Any) -> dict[str, Any]:
        """Returns the sweep as plain data, for the stages that only read files."""
        rows: list[dict[str, Any]] = [
            {
                "values": row.values,
                "id": row.id,
                "iterations": row.experiment.iterations,
                "evaluations": row.experiment.evaluations,
                **row.experiment.budget,
            }
            for row in self.rows
        ]
        rows += [run.row(self.columns) for run in self.imported]
        own = {name: metric.model_dump(mode="json") for name, metric in self.own_metrics.items()}
        measured = {"metrics": list(own.values())} if own else {}
        titles = self._titles
        titled = {"titles": titles} if titles else {}
        keeps_best = all(setting.keeps_best for setting in self.settings.values())
        best = {} if keeps_best else {"best_ever": True}
        known = {**self.fingerprints, **{run.id: run.fingerprint for run in self.imported}}
        keys = {"columns": list(self.columns), "rows": rows, "fingerprints": known}
        return {**about, **measured, **titled, **best, **keys}

    @property
    def _titles(self) -> dict[str, str]:
        """Swept algorithm -> the title in its preset, where it has one."""
        if "algorithm" not in self.columns:
            return {}
        titles = {
            value_text(row.values["algorithm"]): row.experiment.algorithm.title for row in self.rows
        }
        return {name: title for name, title in titles.items() if title}


def by_setting(runs: Mapping[str, Experiment]) -> list[dict[str, Experiment]]:
    """Returns the runs of each setting, which differ only in the seed."""
    settings: dict[tuple[int, ...], dict[str, Experiment]] = {}
    for run, experiment in runs.items():
        settings.setdefault(experiment.setting, {})[run] = experiment
    return list(settings.values())


def table_of_runs(
    experiment: str | Mapping[str, Any],
    sweep: str,
    directory: Path = Path(),
    find: Callable[[Experiment], Identity] = identify,
    draw: Draw | None = None,
    excluded: Sequence[str] = (),
) -> Sweep:
    """Expands a sweep over an experiment.

    Args:
        experiment: A preset's name, a path or a mapping (see `compose`).
        sweep: The sweep in GNU parallel's grammar; empty for only the experiment.
        directory: The folder of the files of `::::` sources.
        find: Returns the identity of an experiment's run.
        draw: Draws the values of `:::~` sources.
        excluded: The rows to exclude; see `remaining`.

    Raises:
        BadInput: The sweep or one of its experiments is not valid, or two experiments have one id.
    """
    has_sources = sweep.strip() or draw is not None
    table = expand(sweep, directory, draw) if has_sources else Table((), [()])
    require_memory(_RUN * len(table.rows), f"sweep: {len(table.rows):,} rows: a table of runs")
    named = [dict(zip(table.names, cells, strict=True)) for cells in table.rows]
    at = table.names.index("seed") if "seed" in table.names else len(table.names)
    alike: dict[tuple[str, ...], Experiment] = {}  # of each setting, the first row's
    rows, known = [], dict[str, tuple[Identity, int]]()
    for place in remaining(named, table.names, excluded) if excluded else range(len(named)):
        values = {name: typed(cell) for name, cell in named[place].items()}
        unset = table.unset(named[place])
        keys = {name: value for name, value in values.items() if name not in unset}
        where = f"sweep, row {place + 1}"
        seed, cells = values.get("seed"), table.rows[place]
        setting = cells[:at] + cells[at + 1 :]
        try:
            if setting in alike and type(seed) is int and seed in SEEDS:
                composed = alike[setting].model_copy(update={"seed": seed})
            else:
                composed = alike[setting] = compose(experiment, keys, source=where)
        except BadInput as error:
            lines = [
                table.line_of(*cell)
                for cell in named[place].items()
                if f"{cell[0]} = " in str(error)
            ]
            raise BadInput("; ".join([str(error), *filter(None, lines)])) from None
        try:
            identity = find(composed)
        except BadInput as error:
            file = experiment if isinstance(experiment, str) else "experiment"
            raise BadInput(f"{f'{where}, of ' if keys else ''}{file}: {error}") from None
        other, first = known.setdefault(identity.id, (identity, place))
        if other.fingerprint != identity.fingerprint:
            raise _one_id((other, first, named[first]), (identity, place, named[place]))
        rows.append(Row(values, identity.id, composed))
    columns = {} if draw else _arguments(rows[0].experiment, table.names)
    if columns:
        rows = [replace(row, values=_renamed(row.values, columns)) for row in rows]
    names = tuple(_renamed(dict.fromkeys(table.names), columns))
    fingerprints = {run: identity.fingerprint for run, (identity, _) in known.items()}
    return Sweep(names, tuple(rows), dict(_longest(rows)), table.unpaired, fingerprints)


def _arguments(experiment: Experiment, names: Sequence[str]) -> dict[str, str]:
    """Returns the dotted path of each swept argument that has the name of another column."""
    taken = [name for name in names if name in (SAMPLE, MEMBER, CHANGES, OF_SWEEPS)]
    paths = list(key_paths(Experiment, experiment.model_dump())) if taken else []
    return {name: dotted(resolve(name, paths, "its parts")) for name in taken}


def _renamed(values: Mapping[str, _Value], names: Mapping[str, str]) -> dict[str, _Value]:
    return {names.get(name, name): value for name, value in values.items()}


def _one_id(*rows: tuple[Identity, int, Mapping[str, str]]) -> BadInput:
    """Returns the error for two experiments whose ids, the starts of their hashes, are equal."""
    texts = [
        f"row {place + 1} ({', '.join(f'{name} {text}' for name, text in values.items())}; "
        f"fingerprint {identity.fingerprint})"
        for identity, place, values in rows
    ]
    return BadInput(
        f"sweep: {' and '.join(texts)} are two experiments with one run id by chance, "
        f"{rows[0][0].id}. Change a value of one of them in its last digit, or exclude one"
    )


def _longest(rows: list[Row]) -> Iterator[tuple[str, Experiment]]:
    """Yields each run once, with the largest budget of its rows."""
    runs: dict[str, Experiment] = {}
    for row in rows:
        known = runs.get(row.id)
        if known is not None and known.budget.keys() != row.experiment.budget.keys():
            raise BadInput(
                f"the run {row.id} has a budget in iterations in one row and in evaluations in "
                "another; use only one of the two in a sweep"
            )
        if known is None or [*known.budget.values()] < [*row.experiment.budget.values()]:
            runs[row.id] = row.experiment
    yield from runs.items()
