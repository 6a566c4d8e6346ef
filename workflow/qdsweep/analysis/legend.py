"""The look of each group in every figure, the legend, and the names of groups in the report."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from qdsweep.config.sweep import Figures
from qdsweep.errors import BadInput
from qdsweep.records.plan import Plan, PlannedRow
from qdsweep.sweep.groups import brief_names, values_label
from qdsweep.sweep.looks import (
    MOST_COLORS,
    MOST_DASHES,
    Encoding,
    Name,
    encoding,
    figure_names,
    is_scale,
)

if TYPE_CHECKING:
    import pandas as pd


# The palette of Okabe and Ito without yellow, which is too pale on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)))
MARKERS = ("", "o", "s", "^", "D", "v")
COLORMAP = "viridis"
NEUTRAL = "#404040"  # of a line that no colour belongs to
_SCALE = "plasma"  # of numbers in order; maps of archives have another
_LIGHTEST = 0.86  # the upper end of the scale is too pale on white


@dataclass(frozen=True)
class Mark:
    """How a line looks: its colour, and the places of its dashes and marks in the palettes."""

    color: str
    dash: int = 0
    marker: int = 0


class Block(NamedTuple):
    """A part of a legend.

    Attributes:
        title: A swept parameter, or nothing.
        entries: Labels with their marks.
        filled: Whether they are of areas in place of lines.
    """

    title: str
    entries: list[tuple[str, Mark]]
    filled: bool = False


@dataclass(frozen=True)
class Marks:
    """The marks of a sweep's groups.

    Attributes:
        encoding: The swept parameter behind each trait.
        figures: The labels of values and parameters.
        slots: The values of each swept parameter, in the order of their colours and dashes.
        values: Group -> its swept values.
        own: Group -> its mark, where that does not follow from its values.
        series: Group -> its label in a panel.
    """

    encoding: Encoding = field(default_factory=Encoding)
    figures: Figures = field(default_factory=Figures)
    slots: Mapping[str, list[str]] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    own: Mapping[str, Mark] = field(default_factory=dict)
    series: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, group: str) -> Mark:
        """Returns the mark of a group."""
        return self.own[group] if group in self.own else self.of(self.values[group])

    def of(self, values: Mapping[str, str]) -> Mark:
        """Returns the mark of some swept values; a missing parameter has no trait."""
        shown = self.encoding
        color, dash, marker = (
            self._slot(name, values) for name in (shown.color, shown.dash, shown.marker)
        )
        if color is None:
            alone = not set(shown.lines) & set(values)
            mark = Mark(COLORS[0] if alone else NEUTRAL, 0, 0)
        elif shown.dash == shown.color:
            dash, mark = None, place_mark(color)
        else:
            mark = Mark(COLORS[color % MOST_COLORS], 0, color // MOST_COLORS)
        if color is not None:
            mark = self._colored(mark, values)
        if dash is not None:  # marks tell further values apart
            mark = replace(mark, dash=dash % MOST_DASHES, marker=mark.marker + dash // MOST_DASHES)
        if marker is not None:
            mark = replace(mark, marker=1 + marker % (len(MARKERS) - 1))
        return mark

    def along(self, group: str, axis: str) -> Mark:
        """Returns the mark of a group's line along an axis of a swept parameter, without panels."""
        if not self.encoding.lines or not self.values:
            return self[group]
        values = {name: text for name, text in self.values[group].items() if name != axis}
        mark, panels = self.of(values), [name for name in self.encoding.facets if name != axis]
        if panels:  # their values need another trait
            every = dict.fromkeys(tuple(v[name] for name in panels) for v in self.values.values())
            place = list(every).index(tuple(values[name] for name in panels))
            mark = replace(mark, marker=place + 1)
        return mark

    def legend(self, groups: Iterable[str]) -> list[Block]:
        """Returns the legend of the lines of `groups`.

        It has a block for each trait where that takes no more entries than one for each line.
        """
        groups = list(groups)
        names = self.encoding.lines
        plain = [Block("", [(self.series[group], self[group]) for group in groups])]
        if len(names) < 2 or any(group in self.own for group in groups):
            return plain
        blocks = []
        for name in names:
            values = dict.fromkeys(self.values[group][name] for group in groups)
            entries = [
                (self.figures.labels.get(value, value), self.of({name: value})) for value in values
            ]
            blocks.append(Block(self.figures.names.get(name, name.split(".")[-1]), entries))
        return blocks if sum(len(block.entries) for block in blocks) <= len(groups) else plain

    def _slot(self, name: str | None, values: Mapping[str, str]) -> int | None:
        if name is None or name not in values:
            return None
        return self.slots[name].index(values[name])

    def _colored(self, mark: Mark, values: Mapping[str, str]) -> Mark:
        """Returns a mark in the colour that the sweep file gives to a value, or of a scale."""
        name = self.encoding.color
        assert name is not None, "no name has the colour"
        own, every = self.figures.colors.get(values[name]), self.slots[name]
        if own is not None:
            return replace(mark, color=own)
        if not is_scale(every):
            return mark
        from matplotlib import colormaps
        from matplotlib.colors import to_hex

        place = sorted(every, key=float).index(values[name]) / (len(every) - 1)
        return Mark(to_hex(colormaps[_SCALE](_LIGHTEST * place)))


def place_mark(place: int) -> Mark:
    """Returns the mark of the n-th of lines: neighbours differ in colour and dashes.

    Of these there are 28 pairs; further lines have marks as well.
    """
    pairs = MOST_COLORS * MOST_DASHES
    return Mark(COLORS[place % MOST_COLORS], place % MOST_DASHES, place // pairs % len(MARKERS))


def imported_mark(place: int) -> Mark:
    """Returns the mark of the n-th group of imported runs: none has a colour, so ours stay."""
    return Mark(NEUTRAL, place % MOST_DASHES, 1 + place % (len(MARKERS) - 1))


def plain_marks(groups: Iterable[str]) -> Marks:
    """Returns marks that follow only from the order of groups."""
    own = {group: place_mark(place) for place, group in enumerate(groups)}
    return Marks(own=own, series={group: group for group in own})


def sweep_marks(plan: Plan, names: Mapping[str, Name]) -> Marks:
    """Returns the marks of a sweep's groups as a reader sees them; `names` by the plan's groups."""
    shown = encoding(plan.figures, plan.columns, [row.values for row in plan.computed])
    firsts = {names[group].label: rows[0] for group, rows in plan.groups.items()}
    values = {label: row.values for label, row in firsts.items() if not row.imported}
    series = {name.label: name.series for name in names.values()}
    figures = plan.figures.model_copy(update={"labels": plan.labels, "names": plan.names})
    marks = Marks(shown, figures, plan.slots, values, {}, series)
    if not shown.lines:  # no name has a trait: a look for each line of a panel
        order = list(dict.fromkeys(series.values()))
        own = {label: place_mark(order.index(name)) for label, name in series.items()}
        marks = replace(marks, own=own)
    own = {
        name.label: replace(marks[name.label], color=name.color or marks[name.label].color)
        for name in names.values()
        if name.own or (name.color is not None and len(shown.lines) < 2)
    }
    others = [label for label, row in firsts.items() if row.imported]
    own |= {label: imported_mark(place) for place, label in enumerate(others)}
    return replace(marks, own={**marks.own, **own})


@dataclass(frozen=True)
class Called:
    """The names of a sweep's groups for a reader. CSV tables keep the swept values.

    Attributes:
        names: Group as in CSV tables -> group as a reader sees it, in the report's order.
        labels: Group, or swept value -> its label in the report.
        swept: Name of a swept parameter in labels of groups -> its label in the report.
    """

    names: dict[str, Name]
    labels: dict[str, str]
    swept: dict[str, str]

    def label(self, group: str) -> str:
        """Returns the label of a group."""
        return self.names[group].label

    def value(self, text: str) -> str:
        """Returns the label of a swept value."""
        return self.labels.get(text, text)

    def called(self, text: str) -> str:
        """Returns the label of an algorithm of several groups, part by part."""
        if text in self.labels:
            return self.labels[text]
        return ", ".join(map(self._part, text.split(", ")))

    def _part(self, part: str) -> str:
        name, blank, value = part.partition(" ")
        if blank and part not in self.labels:
            return f"{self.swept.get(name, name)} {self.labels.get(value, value)}"
        return self.labels.get(part, part)

    def scale(self, scale: str) -> str:
        """Returns a scale with the label of its domain."""
        domain, mark, rest = scale.partition("; ")
        return f"{self.labels.get(domain, domain)}{mark}{rest}"

    def dressed(self, table: "pd.DataFrame") -> "pd.DataFrame":
        """Returns the rows of a table in the report's order, with its names of groups."""
        place = {group: position for position, group in enumerate(self.names)}
        table = table[table["group"].isin(place)]
        table = table.sort_values("group", key=lambda groups: groups.map(place), kind="stable")
        named = {"group": [self.label(group) for group in table["group"]]}
        if "scale" in table:
            named["scale"] = table["scale"].map(self.scale, na_action="ignore")
        return table.assign(**named)

    def dressed_plan(self, plan: Plan) -> Plan:
        """Returns a plan with the report's names of groups and values, in its order."""
        place = {name.label: position for position, name in enumerate(self.names.values())}
        rows = [
            replace(
                row,
                group=self.label(row.group),
                values={
                    name: self.labels.get(text, text) if name in plan.group_columns else text
                    for name, text in row.values.items()
                },
            )
            for row in plan.rows
        ]
        untested = {self.label(group): reason for group, reason in plan.untested.items()}
        rows.sort(key=lambda row: place[row.group])
        return replace(plan, rows=rows, untested=untested)


def group_names(plan: Plan) -> Called:
    """Returns the labels of the groups of a sweep.

    Raises:
        BadInput: `figures` names something that the sweep does not have, or an unknown colour.
    """
    figures = plan.figures
    rows = [row.values for row in plan.computed]
    try:
        names = figure_names(figures, plan.columns, rows, plan.experiment, plan.titles)
    except BadInput as error:
        raise BadInput(f"the plan of the sweep {plan.name}: {error}") from None
    panels = encoding(figures, plan.columns, rows).facets
    others = (row for row in plan.rows if row.imported)
    names |= {row.group: _imported_name(row, panels, plan) for row in others}
    brief = brief_names(plan.columns)
    swept = {brief[name]: called for name, called in figures.names.items() if name in brief}
    return Called(names, plan.labels, swept)


def _imported_name(row: PlannedRow, panels: Sequence[str], plan: Plan) -> Name:
    """Returns the name of imported runs: in a panel of their own where a value is not known."""
    values = {name: plan.labels.get(row.values[name], row.values[name]) for name in panels}
    facet = values_label(values, panels, plan.names) if all(values.values()) else ""
    return Name(row.group, row.group, facet, None)
