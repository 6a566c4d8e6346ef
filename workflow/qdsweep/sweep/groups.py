"""The groups of a sweep: rows that differ only in the seed.

The key `figures` of the sweep file chooses their names and encoding in figures: colour, dashes,
marks and panels.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from qdsweep.config.base import value_text
from qdsweep.config.experiment import BUDGETS
from qdsweep.config.files import listed, nearest
from qdsweep.config.sweep import TABLE_COLUMNS, Figures
from qdsweep.errors import BadInput
from qdsweep.metrics import BY_NAME, NO_METRICS
from qdsweep.sweep.drawn import SAMPLE

MEMBER = "member"
"""The column with the number of a member of a population."""
CHANGES = "changes"
"""The column with the values of its lineage, since its start."""
UNGROUPED = ("seed", SAMPLE, CHANGES)
SHOWN_WITHOUT_NAME = ("experiment", "algorithm", "domain")


def group_columns(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Returns the swept names that distinguish groups.

    They are all but the seed, the number of a draw, a lineage and a constant budget.

    Args:
        columns: The swept names.
        rows: The swept values of each row, as text.
    """
    varying = _varying(columns, rows)
    return [
        name
        for name in columns
        if name not in UNGROUPED and (name not in BUDGETS or name in varying)
    ]


def group_labels(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, str]],
    default: str,
    names: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Returns a short name of each row's group, such as `cma_me, sigma0 0.5`.

    Args:
        columns: The swept names.
        rows: The swept values of each row, as text.
        default: The name of the one group of a sweep that varies only its seed.
        names: Swept name -> what it is called in place of its last part.
    """
    named = label_columns(columns, rows)
    return [values_label(row, named, names) or default for row in rows]


def label_columns(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Returns the swept names that are part of a group's label.

    They are those whose values differ. Names that follow from the algorithm, domain and experiment
    of a row are left out, as `num_emitters` in `::: algorithm map_elites cma_me :::+ num_emitters
    1 15`. If nothing differs, they are all names.

    Args:
        columns: The swept names.
        rows: The swept values of each row, as text.
    """
    names, varying = group_columns(columns, rows), _varying(columns, rows)
    named = [name for name in names if name in varying]
    whole = [name for name in named if name in SHOWN_WITHOUT_NAME]
    count = len({tuple(row[name] for name in whole) for row in rows})

    def is_fixed(name: str) -> bool:
        return count == len({(*(row[each] for each in whole), row[name]) for row in rows})

    return [name for name in named if name in whole or not is_fixed(name)] or names


def _varying(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> set[str]:
    return {name for name in columns if len({row[name] for row in rows}) > 1}


def values_label(
    values: Mapping[str, str],
    names: Sequence[str],
    called: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Returns the values of some swept names in a row, such as `cma_me, sigma0 0.5`."""
    parts = [
        values[name]
        if name in SHOWN_WITHOUT_NAME
        else f"{called.get(name, name.split('.')[-1])} {values[name]}"
        for name in names
        if values[name] != ""  # a key that was not drawn
    ]
    return ", ".join(parts)


# The numbers that a reader can distinguish.
MOST_COLORS = 7
MOST_DASHES = 4
MOST_PANELS = 6
_TASKS = ("experiment", "domain")


@dataclass(frozen=True)
class Encoding:
    """The swept name behind each trait of a line; None: no name.

    Attributes:
        color: Where `dash` is the same name, neighbours differ in both. Where no name has a trait,
            each line has its own look.
        dash: The dashes of the line.
        marker: The marks on the line.
        facets: Names whose values have their own panels.
    """

    color: str | None = None
    dash: str | None = None
    marker: str | None = None
    facets: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """The names that distinguish the lines of a panel."""
        names = (self.color, self.dash, self.marker)
        return list(dict.fromkeys(name for name in names if name))


def encoding(
    figures: Figures, columns: Sequence[str], rows: Sequence[Mapping[str, str]]
) -> Encoding:
    """Returns the encoding of the sweep file, and gives the other names the remaining traits.

    The algorithm has the colour, the next name in the sweep's order the dashes; tasks and all
    further names have panels. A name of more values than there are dashes has the colour. Where
    the names would need too many panels, as in a drawn sweep, only the requested traits are given.

    Args:
        figures: The key `figures` of the sweep file, its names known to the sweep.
        columns: The swept names.
        rows: The swept values of each row, as text.
    """
    asked = figures.encode
    facet = asked.facets or figures.facets
    facets = [facet] if facet else []
    given = {asked.color, asked.dash, asked.marker, facet}
    free = [name for name in label_columns(columns, rows) if name not in given]
    free.sort(key=lambda name: name != "algorithm")  # stable: the others as they were swept
    own = [name for name in free if name not in _TASKS]
    if not facets and (own or given - {None}):
        facets, free = [name for name in free if name in _TASKS], own
    color, dash = asked.color, asked.dash

    def many(name: str) -> bool:
        return len(values_of(rows, name)) > MOST_DASHES

    if color is None and free:
        color = next(filter(many, free), free[0])
        free.remove(color)
    few = [name for name in free if not many(name)]
    if dash is None and few:
        dash = few[0]
        free.remove(dash)
    if len({tuple(row[name] for name in free) for row in rows}) > MOST_PANELS:
        return Encoding(asked.color, asked.dash, asked.marker, tuple(facets))
    if color is not None and dash is None and asked.marker is None:
        dash = None if is_scale(values_of(rows, color)) else color
    return Encoding(color, dash, asked.marker, (*facets, *free))


def slots_of(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, str]],
    before: Mapping[str, list[str]] = MappingProxyType({}),
) -> dict[str, list[str]]:
    """Returns the values of each swept name, in the order that gives them colours and dashes.

    A value keeps its place when others are put before it or taken out. A removed value keeps
    its place too, while there are enough colours.

    Args:
        columns: The swept names.
        rows: The swept values of each row, as text.
        before: What this returned for the sweep as it was.
    """
    slots = {}
    for name in group_columns(columns, rows):
        values, earlier = values_of(rows, name), before.get(name, [])
        both = list(dict.fromkeys([*earlier, *values]))
        crowded = len(both) > max(MOST_COLORS, len(values))
        slots[name] = values if crowded or not set(earlier) & set(values) else both
    return slots


def values_of(rows: Sequence[Mapping[str, str]], name: str) -> list[str]:
    """Returns the distinct values of a swept name, in the sweep's order."""
    return list(dict.fromkeys(row[name] for row in rows))


def is_scale(values: Sequence[str]) -> bool:
    """Returns whether values are numbers, and so many that colours must show their order."""
    try:
        finite = all(math.isfinite(float(value)) for value in values)
    except ValueError:
        return False
    return finite and len(values) > MOST_DASHES


Rows = Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class Name:
    """A group as figures show it.

    Attributes:
        label: Its label.
        series: Its name in a panel of its facet: the label without the facet's value.
        facet: The facet, such as `batch_size 32`; empty if there are no facets.
        color: Its colour; None for one of the palette.
        own: Whether the sweep file names it as a whole, rather than its values.
    """

    label: str
    series: str
    facet: str
    color: str | None
    own: bool = False


def labels_of(figures: Figures, titles: Mapping[str, str]) -> dict[str, str]:
    """Returns group, or swept value -> its label: that of the sweep file, or the preset's title.

    A title that two algorithms share, or that no figure can show, is left out.

    Args:
        figures: The key `figures` of the sweep file.
        titles: Swept algorithm -> the title in its preset.
    """
    taken = [*titles, *titles.values(), *figures.labels.values()]
    usable = {
        name: title
        for name, title in titles.items()
        if taken.count(title) == 1 and title.isprintable() and title[0] not in "_ $"
    }
    return {**usable, **figures.labels}


def figure_names(
    figures: Figures,
    columns: Sequence[str],
    rows: Rows,
    default: str,
    titles: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Name]:
    """Returns the name of each group in figures.

    Args:
        figures: The key `figures` of the sweep file.
        columns: The swept names.
        rows: The swept values of each row, as text.
        default: The name of the one group of a sweep that varies only its seed.
        titles: Swept algorithm -> the title in its preset, its label unless `figures` has one.

    Returns:
        Group -> name, in the order that figures have.

    Raises:
        BadInput: A name is unknown, a colour is none, a label cannot be drawn, or two groups would
            be called the same.
    """
    _check_labels("labels", figures.labels)
    _check_labels("names", figures.names)
    _check_colors(figures.colors)
    groups = group_labels(columns, rows, default)
    names = group_columns(columns, rows)
    _known("names", figures.names, names)
    _distinct_names(names, figures.names)
    _check_encode(figures, names)
    shown = encoding(figures, columns, rows)
    rest = [name for name in label_columns(columns, rows) if name not in shown.facets]
    series = group_labels(rest, rows, default)
    # A panel has a line for each series. If there is only one, the facet is its name.
    parted = bool(shown.facets) and len(set(series)) > 1
    series = series if parted else groups
    values = [row[name] for row in rows for name in names]
    by_color = [] if shown.color is None else values_of(rows, shown.color)
    _known("labels", figures.labels, [*groups, *series, *values])
    _known("order", figures.order, [*groups, *series])
    _known("colors", figures.colors, [*groups, *series, *by_color])

    own_labels = labels_of(figures, titles)
    called = [{name: own_labels.get(text, text) for name, text in row.items()} for row in rows]
    labels = group_labels(columns, called, default, figures.names)
    short = group_labels(rest, called, default, figures.names) if parted else labels
    facets = [values_label(row, shown.facets, figures.names) for row in called]
    by_group: dict[str, Name] = {}
    own: dict[str, str] = {}
    for position, (group, part) in enumerate(zip(groups, series, strict=True)):
        label = own_labels.get(group, labels[position])
        brief = own_labels.get(part, short[position]) if parted else label
        color = figures.colors.get(group, figures.colors.get(part))
        value = "" if shown.color is None else rows[position][shown.color]
        named = len(shown.lines) > 1 and bool({group, part} & {*figures.labels, *figures.colors})
        by_group[group] = Name(
            label, brief, facets[position], color or figures.colors.get(value), named
        )
        own[group] = part
    _distinct(by_group)
    place = {name: position for position, name in reversed(list(enumerate(figures.order)))}
    last = len(figures.order)
    return dict(
        sorted(by_group.items(), key=lambda item: place.get(item[0], place.get(own[item[0]], last)))
    )


def _check_encode(figures: Figures, names: Sequence[str]) -> None:
    asked = {key: name for key, name in figures.encode if name is not None}
    for key, name in asked.items():
        _known(f"encode: {key}", [name], names)
    if figures.facets is not None:
        _known("facets", [figures.facets], names)
        if asked.get("facets", figures.facets) != figures.facets:
            raise BadInput(
                f"figures: facets {figures.facets!r} and encode: facets {asked['facets']!r}"
                " differ; write one of them"
            )


def _check_labels(key: str, labels: Mapping[str, str]) -> None:
    for name, label in labels.items():
        wrong = "" if label.strip() and not label.startswith("_") else "it would not be shown"
        if not label.isprintable():
            wrong = "it has a line break or another sign that cannot be drawn"
        if label.count("$") > 1:  # one alone is a dollar
            from matplotlib.cbook import is_math_text
            from matplotlib.mathtext import MathTextParser

            try:
                if is_math_text(label):
                    MathTextParser("path").parse(label)
            except ValueError as error:
                wrong = f"it is no formula of matplotlib ({str(error).splitlines()[-1].strip()})"
        if wrong:
            raise BadInput(f"figures: {key}: {name}: {label!r}: {wrong}; write another label")


def _check_colors(colors: Mapping[str, str]) -> None:
    if not colors:
        return
    from matplotlib.colors import is_color_like

    for group, color in colors.items():
        if color.lower() == "none" or not is_color_like(color):
            raise BadInput(
                f"figures: colors: {group}: {color!r} is no colour; write it as "
                "#0072B2, or as a name of CSS such as black"
            )


def _known(key: str, given: Iterable[str], known: Iterable[str]) -> None:
    known = list(dict.fromkeys(known))
    for name in given:
        if name not in known:
            raise BadInput(
                f"figures: {key}: {name!r} is unknown; {nearest(name, known)}"
                f"known: {listed(known, '; ') or 'nothing was swept but the seed'}"
            )


def _distinct_names(columns: Iterable[str], names: Mapping[str, str]) -> None:
    taken: dict[str, str] = {}
    for column in columns:
        name = names.get(column, column)
        if name != column and name in NO_METRICS | {*TABLE_COLUMNS, *BY_NAME}:
            raise BadInput(
                f"figures: names: {column!r} would be called {name!r}, as another column of tables "
                "is; write another name"
            )
        if name in taken:
            raise BadInput(
                f"figures: names: {taken[name]!r} and {column!r} would both be called {name!r}; "
                "give each a name of its own"
            )
        taken[name] = column


def _distinct(names: Mapping[str, Name]) -> None:
    for what in ("label", "series"):
        taken: dict[tuple[str, str], str] = {}
        for group, name in names.items():
            key = (getattr(name, what), name.facet if what == "series" else "")
            if key in taken:
                raise BadInput(
                    f"figures: labels: the groups {taken[key]!r} and {group!r} "
                    f"would both be called {key[0]!r}; give each a label of its own"
                )
            taken[key] = group


class Groups:
    """The groups of a sweep, to choose one of them by swept values.

    Args:
        columns: The swept names.
        rows: The swept values of each row.
        default: The name of the one group of a sweep that varies only its seed.
    """

    def __init__(
        self, columns: Sequence[str], rows: Sequence[Mapping[str, Any]], default: str = "all runs"
    ) -> None:
        texts = [{name: value_text(row[name]) for name in columns} for row in rows]
        self.columns = columns
        self.names = group_columns(columns, texts)
        self.rows = rows
        self.labels = group_labels(columns, texts, default)

    def choose(self, number: int, where: Mapping[str, Any]) -> str:
        """Returns the group that an entry of `published` chooses.

        Args:
            number: The entry's number, from 1, for messages.
            where: Swept names and values.

        Raises:
            BadInput: A name or a value is unknown, or the entry fits no group or several.
        """
        entry = f"published, entry {number}: where"
        for name, value in where.items():
            self._check(entry, name, value)
        chosen = [
            label
            for label, row in zip(self.labels, self.rows, strict=True)
            if all(_same(row[name], value) for name, value in where.items())
        ]
        groups = list(dict.fromkeys(chosen))
        shown = json.dumps(dict(where))
        if not groups:
            raise BadInput(f"{entry} = {shown}: no run of the sweep has all of these values")
        if len(groups) > 1:
            missing = [name for name in self.names if name not in where]
            raise BadInput(
                f"{entry} = {shown} fits {len(groups)} groups: {_few(groups)}; say also which "
                f"{' and '.join(missing)}"
            )
        return groups[0]

    def _check(self, entry: str, name: str, value: Any) -> None:
        if name not in self.names:
            known = ", ".join(self.names) or "nothing but the seed"
            raise BadInput(
                f"{entry}.{name}: {nearest(name, self.names)}names that tell the groups of this "
                f"sweep apart: {known}"
            )
        values = [row[name] for row in self.rows]
        if not any(_same(known, value) for known in values):
            texts = list(dict.fromkeys(map(value_text, values)))
            raise BadInput(
                f"{entry}.{name} = {json.dumps(value)}: {nearest(value_text(value), texts)}"
                f"the sweep has {_few(texts)}"
            )


def _same(first: Any, second: Any) -> bool:
    """Returns whether two values are the same: 1 is 1.0, but true is not 1."""
    return bool(first == second) and isinstance(first, bool) == isinstance(second, bool)


def _few(texts: Sequence[str]) -> str:
    shown = "; ".join(texts[:8])
    return f"{shown}; ... ({len(texts)} in all)" if len(texts) > 8 else shown
