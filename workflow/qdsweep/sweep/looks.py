"""The names of groups in figures and their encoding: colour, dashes, marks and panels.

The key `figures` of the sweep file chooses them.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from qdsweep.config.sweep import TABLE_COLUMNS, Figures, require_drawable
from qdsweep.errors import BadInput
from qdsweep.metrics import RESULTS
from qdsweep.sweep.groups import (
    brief_names,
    group_columns,
    group_labels,
    label_columns,
    values_label,
)
from qdsweep.text import listed, nearest

Rows = Sequence[Mapping[str, str]]

# The largest numbers that a reader can distinguish.
MOST_COLORS = 7
MOST_DASHES = 4
MOST_PANELS = 6
_TASKS = ("experiment", "domain")


@dataclass(frozen=True)
class Encoding:
    """The swept parameter that each trait of a line shows; None if there is none.

    Attributes:
        color: The colour of the line. If `dash` is the same parameter, neighbours differ in both.
            If no parameter has a trait, each line has its own look.
        dash: The dashes of the line.
        marker: The marks on the line.
        facets: The parameters whose values have their own panels.
    """

    color: str | None = None
    dash: str | None = None
    marker: str | None = None
    facets: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """The swept parameters that distinguish the lines of a panel."""
        names = (self.color, self.dash, self.marker)
        return list(dict.fromkeys(name for name in names if name))


def encoding(
    figures: Figures, columns: Sequence[str], rows: Sequence[Mapping[str, str]]
) -> Encoding:
    """Returns the encoding of the sweep file, and assigns the remaining traits.

    The algorithm gets the colour, and the next parameter in the sweep's order gets the dashes.
    Tasks and all further parameters get panels. A parameter with more values than there are dashes
    gets the colour. If the parameters would need too many panels, as in a drawn sweep, only the
    requested traits are assigned.

    Args:
        figures: The key `figures` of the sweep file, whose names are swept parameters.
        columns: The swept parameters.
        rows: The swept values of each row, as text.
    """
    asked = figures.encode
    facet = asked.facets or figures.facets
    facets = [facet] if facet else []
    given = {asked.color, asked.dash, asked.marker, facet}
    free = [name for name in label_columns(columns, rows) if name not in given]
    free.sort(key=lambda name: name != "algorithm")  # a stable sort keeps the sweep's order
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
    """Returns the values of each swept parameter, in the order of their colours and dashes.

    A value keeps its place when others are added before it or removed. A removed value also keeps
    its place while there are enough colours.

    Args:
        columns: The swept parameters.
        rows: The swept values of each row, as text.
        before: The result for the previous state of the sweep.
    """
    slots = {}
    for name in group_columns(columns, rows):
        values, earlier = values_of(rows, name), before.get(name, [])
        both = list(dict.fromkeys([*earlier, *values]))
        crowded = len(both) > max(MOST_COLORS, len(values))
        slots[name] = values if crowded or not set(earlier) & set(values) else both
    return slots


def values_of(rows: Sequence[Mapping[str, str]], name: str) -> list[str]:
    """Returns the distinct values of a swept parameter, in the sweep's order."""
    return list(dict.fromkeys(row[name] for row in rows))


def is_scale(values: Sequence[str]) -> bool:
    """Returns whether values are numbers, and too many for colours without an order."""
    try:
        finite = all(math.isfinite(float(value)) for value in values)
    except ValueError:
        return False
    return finite and len(values) > MOST_DASHES


@dataclass(frozen=True)
class Name:
    """The name of a group in figures.

    Attributes:
        label: Its label.
        series: Its name in a panel of its facet, which is the label without the facet's value.
        facet: The facet, such as `batch_size 32`; empty if there are no facets.
        color: Its colour; None for a colour of the palette.
        own: Whether the sweep file names the whole group, not its values.
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
        columns: The swept parameters.
        rows: The swept values of each row, as text.
        default: The name of the only group, if a sweep varies only its seed.
        titles: Swept algorithm -> the title in its preset, its label unless `figures` has one.

    Returns:
        Group -> name, in the order of figures.

    Raises:
        BadInput: A name is unknown, a colour is not valid, a label cannot be drawn, or two groups
            would have the same label.
    """
    require_drawable(figures)
    groups = group_labels(columns, rows, default)
    names = group_columns(columns, rows)
    _known("names", figures.names, names)
    _distinct_names(names, figures.names)
    _check_encode(figures, names)
    shown = encoding(figures, columns, rows)
    rest = [name for name in label_columns(columns, rows) if name not in shown.facets]
    briefly = brief_names(columns)
    series = group_labels(rest, rows, default, briefly)
    # A panel has one line per series. If there is only one series, the facet is its name.
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
    displayed = {**briefly, **figures.names}
    short = group_labels(rest, called, default, displayed) if parted else labels
    facets = [values_label(row, shown.facets, displayed) for row in called]
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
                " differ; write only one of them"
            )


def _known(key: str, given: Iterable[str], known: Iterable[str]) -> None:
    known = list(dict.fromkeys(known))
    for name in given:
        if name not in known:
            raise BadInput(
                f"figures: {key}: {name!r} is unknown; {nearest(name, known)}"
                f"known: {listed(known, most=20, between='; ') or 'nothing was swept but the seed'}"
            )


def _distinct_names(columns: Iterable[str], names: Mapping[str, str]) -> None:
    taken: dict[str, str] = {}
    for column in columns:
        name = names.get(column, column)
        if name != column and name in {"id", "runs", *TABLE_COLUMNS, *RESULTS}:
            raise BadInput(
                f"figures: names: {column!r} would have the name {name!r} of another column of "
                "tables; write another name"
            )
        if name in taken:
            raise BadInput(
                f"figures: names: {taken[name]!r} and {column!r} would both have the name "
                f"{name!r}; write different names"
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
                    f"would both have the label {key[0]!r}; write different labels"
                )
            taken[key] = group
