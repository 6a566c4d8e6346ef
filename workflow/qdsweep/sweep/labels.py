"""What figures call the groups of a sweep: the key `figures` of the sweep file."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from qdsweep.config.files import listed, nearest
from qdsweep.config.sweep import TABLE_COLUMNS, Figures
from qdsweep.errors import BadInput
from qdsweep.metrics import BY_NAME, NO_METRICS
from qdsweep.sweep.encoding import encoding, values_of
from qdsweep.sweep.groups import group_columns, group_labels, label_columns, values_label

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


def figure_names(
    figures: Figures, columns: Sequence[str], rows: Rows, default: str
) -> dict[str, Name]:
    """Returns the name of each group in figures.

    Args:
        figures: The key `figures` of the sweep file.
        columns: The swept names.
        rows: The swept values of each row, as text.
        default: The name of the one group of a sweep that varies only its seed.

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

    called = [{name: figures.labels.get(text, text) for name, text in row.items()} for row in rows]
    labels = group_labels(columns, called, default, figures.names)
    short = group_labels(rest, called, default, figures.names) if parted else labels
    facets = [values_label(row, shown.facets, figures.names) for row in called]
    found: dict[str, Name] = {}
    own: dict[str, str] = {}
    for position, (group, part) in enumerate(zip(groups, series, strict=True)):
        label = figures.labels.get(group, labels[position])
        brief = figures.labels.get(part, short[position]) if parted else label
        color = figures.colors.get(group, figures.colors.get(part))
        value = "" if shown.color is None else rows[position][shown.color]
        named = len(shown.lines) > 1 and bool({group, part} & {*figures.labels, *figures.colors})
        found[group] = Name(
            label, brief, facets[position], color or figures.colors.get(value), named
        )
        own[group] = part
    _distinct(found)
    place = {name: position for position, name in reversed(list(enumerate(figures.order)))}
    last = len(figures.order)
    return dict(
        sorted(found.items(), key=lambda item: place.get(item[0], place.get(own[item[0]], last)))
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
