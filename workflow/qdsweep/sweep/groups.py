"""The groups of a sweep, whose rows differ only in the seed.

The key `figures` of the sweep file chooses their names and encoding in figures: colour, dashes,
marks and panels.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from qdsweep.config.base import same_value, value_text
from qdsweep.config.experiment import BUDGET_NAMES
from qdsweep.config.sweep import TABLE_COLUMNS, Figures
from qdsweep.errors import BadInput
from qdsweep.metrics import RESULTS
from qdsweep.sweep.drawn import SAMPLE
from qdsweep.text import listed, nearest

MEMBER = "member"
"""The column with the number of a member of a population."""
CHANGES = "changes"
"""The column with the values of its lineage since its start."""
UNGROUPED = ("seed", SAMPLE, CHANGES)
OF_SWEEPS = "sweep"
"""The column with the names of sweeps, where several are compared."""
SHOWN_WITHOUT_NAME = ("experiment", "algorithm", "domain")


def group_columns(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Returns the swept parameters that distinguish groups.

    They are all except the seed, the number of a draw, a lineage and a constant budget.

    Args:
        columns: The swept parameters.
        rows: The swept values of each row, as text.
    """
    varying = _varying(columns, rows)
    # Without a population, it is an argument of the user's.
    ungrouped = {*UNGROUPED} - ({CHANGES} if MEMBER not in columns else set())
    return [
        name
        for name in columns
        if name not in ungrouped and (name not in BUDGET_NAMES or name in varying)
    ]


def group_labels(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, str]],
    default: str,
    names: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Returns a short name for each row's group, such as `cma_me, sigma0 0.5`.

    Args:
        columns: The swept parameters.
        rows: The swept values of each row, as text.
        default: The name of the only group, if a sweep varies only its seed.
        names: Swept parameter -> its displayed name, which replaces that of `brief_names`.
    """
    named, called = label_columns(columns, rows), {**brief_names(columns), **names}
    return [values_label(row, named, called) or default for row in rows]


def brief_names(columns: Sequence[str]) -> dict[str, str]:
    """Returns swept parameter -> its name in labels: its last part, or more if another has that.

    The `sigma` of two groups of emitters are `emitters.0.sigma` and `emitters.1.sigma`.
    """
    brief = {}
    for name in columns:
        parts = name.split(".")
        ends = [".".join(parts[-n:]) for n in range(1, len(parts)) if not parts[-n].isdecimal()]
        others = [other for other in columns if other != name]
        clear = (
            end for end in ends if not any(f".{other}".endswith(f".{end}") for other in others)
        )
        brief[name] = next(clear, name)
    return brief


def label_columns(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Returns the swept parameters that are part of a group's label.

    They are those whose values differ. Parameters that follow from the algorithm, domain and
    experiment of a row are omitted, such as `num_emitters` in `::: algorithm map_elites cma_me :::+
    num_emitters 1 15`. If nothing differs, they are all parameters.

    Args:
        columns: The swept parameters.
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
    """Returns the values of some swept parameters in a row, such as `cma_me, sigma0 0.5`."""
    parts = [
        values[name]
        if name in SHOWN_WITHOUT_NAME
        else f"{called.get(name, name.split('.')[-1])} {values[name]}"
        for name in names
        if values[name] != ""  # a key that was not drawn
    ]
    return ", ".join(parts)


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


Rows = Sequence[Mapping[str, str]]


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


def _check_labels(key: str, labels: Mapping[str, str]) -> None:
    for name, label in labels.items():
        wrong = "" if label.strip() and not label.startswith("_") else "it would not be shown"
        if not label.isprintable():
            wrong = "it has a line break or another character that cannot be drawn"
        if label.count("$") > 1:  # a single one is a dollar sign
            from matplotlib.cbook import is_math_text
            from matplotlib.mathtext import MathTextParser

            try:
                if is_math_text(label):
                    MathTextParser("path").parse(label)
            except ValueError as error:
                wrong = f"it is not a matplotlib formula ({str(error).splitlines()[-1].strip()})"
        if wrong:
            raise BadInput(f"figures: {key}: {name}: {label!r}: {wrong}; write another label")


def _check_colors(colors: Mapping[str, str]) -> None:
    if not colors:
        return
    from matplotlib.colors import is_color_like

    for group, color in colors.items():
        if color.lower() == "none" or not is_color_like(color):
            raise BadInput(
                f"figures: colors: {group}: {color!r} is not a colour; write it as "
                "#0072B2, or as a CSS name such as black"
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


class Groups:
    """The groups of a sweep, which are chosen by swept values.

    Args:
        columns: The swept parameters.
        rows: The swept values of each row.
        default: The name of the only group, if a sweep varies only its seed.
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
        """Returns the group of an entry of `published`.

        Args:
            number: The entry's number, from 1, for messages.
            where: Swept parameter -> value.

        Raises:
            BadInput: A name or a value is unknown, or the entry matches no group or several.
        """
        entry = f"published, entry {number}: where"
        for name, value in where.items():
            self._check(entry, name, value)
        chosen = [
            label
            for label, row in zip(self.labels, self.rows, strict=True)
            if all(same_value(row[name], value) for name, value in where.items())
        ]
        groups = list(dict.fromkeys(chosen))
        shown = json.dumps(dict(where))
        if not groups:
            raise BadInput(f"{entry} = {shown}: no run of the sweep has all of these values")
        if len(groups) > 1:
            missing = [name for name in self.names if name not in where]
            raise BadInput(
                f"{entry} = {shown} matches {len(groups)} groups: {_few(groups)}; also give "
                f"{' and '.join(missing)}"
            )
        return groups[0]

    def _check(self, entry: str, name: str, value: Any) -> None:
        if name not in self.names:
            known = ", ".join(self.names) or "nothing but the seed"
            raise BadInput(
                f"{entry}.{name}: {nearest(name, self.names)}names that distinguish the groups of "
                f"this sweep: {known}"
            )
        values = [row[name] for row in self.rows]
        if not any(same_value(known, value) for known in values):
            texts = list(dict.fromkeys(map(value_text, values)))
            raise BadInput(
                f"{entry}.{name} = {json.dumps(value)}: {nearest(value_text(value), texts)}"
                f"the sweep has {_few(texts)}"
            )


def _few(texts: Sequence[str]) -> str:
    shown = "; ".join(texts[:8])
    return f"{shown}; ... ({len(texts)} in total)" if len(texts) > 8 else shown
