"""Interactive figures of the page, drawn by plotly: learning curves, parallel coordinates."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from qdsweep.analysis.curves import (
    Line,
    View,
    constant,
    curve_lines,
    is_defined,
    page_views,
    time_text,
)
from qdsweep.analysis.data import SweepData
from qdsweep.analysis.figures.combinations import Combinations, Upright, combinations, coordinates
from qdsweep.analysis.figures.heatmap import narrowed
from qdsweep.analysis.figures.search_figures import search_combinations, stopped_early
from qdsweep.analysis.legend import COLORMAP, Mark
from qdsweep.analysis.noise import reported_text
from qdsweep.analysis.search_progress import Searched
from qdsweep.analysis.selection import SweepTables, others_text, short_names
from qdsweep.analysis.statistics import half_width
from qdsweep.metrics import meanings
from qdsweep.ornaments import ornament
from qdsweep.text import (
    common_decimals,
    for_plotly,
    mean_and_error,
    number,
    plural,
    with_interval,
)

MAX_RUNS = 200

_BETWEEN = 12  # points between two axes, where the mouse finds a line
_MAX_LINES = 28  # the number of pairs of colour and dash
_MAX_PANELS = 6
_POINTS = 150
_PLAIN = (1e-6, 1e15)  # sizes of numbers without powers of ten
# legend.DASHES and legend.MARKERS, as plotly calls them.
_DASHES = ("solid", "dash", "dot", "dashdot")
_SYMBOLS = ("", "circle", "square", "triangle-up", "diamond", "triangle-down")
FONT = {"family": "system-ui, Segoe UI, Roboto, Helvetica, Arial, sans-serif", "size": 13}


class Label(NamedTuple):
    """The hover text of a line: its name and further lines; and whether it is drawn pale."""

    title: str
    lines: list[str]
    pale: bool = False


def hover_coordinates(
    combined: Combinations, about: Callable[[dict[str, Any]], Label], what: str = "group"
) -> tuple[tuple[list[dict[str, Any]], dict[str, Any]], str]:
    """Returns the traces, the layout and caption of one scale: a line for each combination.

    Args:
        combined: The combinations.
        about: Row of their table -> label of its line.
        what: What a line is.
    """
    described = coordinates(combined, MAX_RUNS)
    count = len(described.axes)
    places = np.linspace(0, count - 1, (count - 1) * _BETWEEN + 1)
    traces = []
    for row, heights in zip(described.table.to_dict("records"), described.heights, strict=True):
        label, mean = about(row), row["mean"]
        half = half_width(row["se"], row["n"])
        score = mean_and_error(mean, half, common_decimals([mean], ()))
        score_text = f"{combined.score.heading} {score} (n = {number(row['n'])})"
        lines = "<br>".join([*map(for_plotly, label.lines), score_text])
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": for_plotly(label.title),
                "x": places.astype(np.float32),
                "y": np.interp(places, range(count), heights).astype(np.float32),
                "line": {"width": 2, "color": _color(heights[-1], pale=label.pale)},
                "hovertemplate": f"<b>{for_plotly(label.title)}</b><br>{lines}<extra></extra>",
            }
        )
    caption = (
        f"Each line is one {what} with its swept values. Its end and colour show the final score,"
        " mean over its runs. Drag a box over lines to keep only these lines. With Shift, several"
        " boxes keep the lines in all of them. Double-click to show all lines again."
    )
    if len(traces) < len(combined.table):
        caption += f" Shown: the best {len(traces)} of {plural(len(combined.table), what)}."
    caption += combined.missing_text
    return (traces, _layout(described.axes)), caption


def _color(height: float, *, pale: bool) -> str:
    """Returns the colour of a line that ends at a height; the page itself changes opacities."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    color = colormaps[COLORMAP](height)
    if not pale:
        return str(to_hex(color))
    red, green, blue = (round(255 * part) for part in color[:3])
    return f"rgba({red},{green},{blue},0.3)"


def _layout(axes: list[Upright]) -> dict[str, Any]:
    """Returns vertical lines with their labels in the place of axes."""
    last = len(axes) - 1
    shapes = [
        {"type": "line", "x0": i, "x1": i, "y0": 0, "y1": 1, "line": {"color": "#5a6472"}}
        for i in range(len(axes))
    ]
    notes: list[dict[str, Any]] = []
    for position, axis in enumerate(axes):
        title = f"<b>{for_plotly(axis.title)}</b>"
        where = {"name": "title", "x": position, "y": 1.06, "yanchor": "bottom"}
        anchor = "left" if position == 0 else "right" if position == last else "center"
        notes.append(where | {"text": title, "xanchor": anchor})
        side, shift = ("left", 6) if 0 < position == last else ("right", -6)
        common = {"x": position, "xanchor": side, "xshift": shift, "font": {"size": 12}}
        common["bgcolor"] = "rgba(255,255,255,0.75)"
        for height, text in axis.ticks:
            cut = text if len(text) <= 22 else f"{text[:20]}…"
            notes.append(common | {"y": height, "text": for_plotly(cut)})
    hidden = {"visible": False, "fixedrange": True}
    left, right = (max(len(text) for _, text in axes[i].ticks) for i in (0, -1))
    return {
        "xaxis": hidden | {"range": [-0.004 * last, 1.004 * last]},
        "yaxis": hidden | {"range": [-0.05, 1.18]},
        "shapes": shapes,
        "annotations": [{"showarrow": False, **note} for note in notes],
        "showlegend": False,
        "margin": {"l": 20 + 7 * left, "r": 20 + 7 * right, "t": 10, "b": 10},
    }


@dataclass(frozen=True)
class Interactive:
    """A figure that plotly draws in the page; views: what a reader may choose -> its JSON."""

    name: str
    title: str
    caption: str
    views: dict[str, str]


def interactive_figures(data: SweepData) -> list[Interactive]:
    """Returns learning curves of each panel and parallel coordinates of each scale.

    Those of a search have all its settings.
    """
    figures: list[Interactive] = []
    for place, (about, groups) in enumerate(_parts(data.panels)):
        name, title = f"curves-{place + 1}", f"Learning curves{about}"
        figures += _of_panel(data, groups, name, title)
    if data.search is not None:
        return [*figures, *_of_settings(data.search)]
    return [*figures, *_of_groups(data)]


def _nothing(why: str, *about: object) -> list[Interactive]:
    return []


@ornament("the interactive parallel coordinates of the page", _nothing)
def _of_groups(data: SweepData) -> list[Interactive]:
    """Returns parallel coordinates of the groups of each scale."""
    figures, by_scale = [], {part.scale: part for part in combinations(data)}
    for place, (about, groups) in enumerate(_parts(data.score_scales)):
        combined = by_scale.get(data.score_scale_of[groups[0]])
        if combined is not None and len(combined.axes) > 1:

            def label(row: dict[str, Any]) -> Label:
                values = data.plan.groups[row["group"]][0].values
                swept = [
                    f"{data.plan.called(name)} {values[name]}" for name in data.plan.group_columns
                ]
                return Label(row["group"], swept)

            drawn, caption = hover_coordinates(combined, label)
            caption += _left_out(data.score_scales)
            title = f"Parallel coordinates{about}"
            figures.append(_coordinates(place + 1, title, caption, drawn))
    return figures


@ornament("the interactive parallel coordinates of the page", _nothing)
def _of_settings(search: Searched) -> list[Interactive]:
    """Returns parallel coordinates of the settings of a search; nothing of fewer than two."""
    combined = search_combinations(search)
    if combined is None:
        return []
    pale = stopped_early(search)

    def label(row: dict[str, Any]) -> Label:
        swept = [f"{axis.label} {row[axis.name]}" for axis in combined.axes if row[axis.name]]
        so_far = f"after {row['budget']:,} {search.unit}"
        why = [row["why"]] if row["why"] else []
        return Label(f"setting {row['group']}", [*swept, *why, so_far], row["group"] in pale)

    drawn, caption = hover_coordinates(combined, label, "setting")
    if pale:
        caption += " Pale: settings that stopped earlier, with the score at that time."
    return [_coordinates(1, "Parallel coordinates", caption, drawn)]


def _coordinates(
    place: int, title: str, caption: str, drawn: tuple[list[dict[str, Any]], dict[str, Any]]
) -> Interactive:
    traces, layout = drawn
    views = {"": _as_json(traces, layout | {"dragmode": "select"})}
    return Interactive(f"coordinates-{place}", title, caption, views)


def _parts(parts: dict[str, list[str]]) -> list[tuple[str, list[str]]]:
    """Returns the end of a title and the groups of each panel or scale, at most `MAX_PANELS`."""
    names = short_names(list(parts)) if len(parts) > 1 else [""]
    titles = [f": {name}" if name else "" for name in names]
    return list(zip(titles, parts.values(), strict=True))[:_MAX_PANELS]


def _left_out(parts: dict[str, list[str]]) -> str:
    return others_text(sum(map(len, list(parts.values())[_MAX_PANELS:])))


def plotly_source() -> str:
    """Returns plotly.js, minified, which the page carries (MIT License)."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


@ornament("the interactive figure {2} of the page", _nothing)
def _of_panel(tables: SweepTables, groups: list[str], name: str, title: str) -> list[Interactive]:
    """Returns the learning curves of a panel."""
    views, caption = _learning_curves(tables, groups)
    return [Interactive(name, title, caption, views)]


def _learning_curves(tables: SweepTables, groups: list[str]) -> tuple[dict[str, str], str]:
    """Returns the views and the caption of learning curves."""
    shown = tables.best(groups, _MAX_LINES)
    views, metrics = {}, []
    for view in page_views(tables):
        lines = curve_lines(tables, shown, view)
        if is_defined(lines) and constant(lines) is None:
            name = f"{view.metric.heading} over {view.over.title().lower()}"
            views[name] = _as_json(*_draw(view, tables, lines))
            metrics.append(view.metric)
    caption = f"{tables.lines_text(shown).strip()}{time_text(tables, shown)}{meanings(metrics)}"
    caption += " Point at a line to see its values."
    if len(shown) > 1:
        caption += " Click a name to hide its line. Double-click it to show only that line."
    if len(shown) < len(groups):
        caption += f" Shown: the best {len(shown)} of {len(groups)} groups."
    caption += _left_out(tables.panels) + reported_text(tables.plan)
    return views, caption


def _draw(
    view: View, tables: SweepTables, lines: list[Line]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Returns the traces and the axes of a view: a band and a line for each group."""
    opacity = 0.18 if len(lines) <= 8 else 0.07  # many bands would hide the lines
    traces = [trace for line in lines for trace in _band_and_line(view, tables, line, opacity)]
    grid = {"gridcolor": "#e8ebef", "zerolinecolor": "#c8ced6", "automargin": True}
    grid["tickformat"] = ",~f"  # 9,000 and 0.25
    zero = {"rangemode": "tozero"}
    x = grid | {"title": {"text": view.over.title()}} | zero
    y = grid | {"title": {"text": view.metric.heading}}
    y |= zero if view.metric.from_zero else {}
    sizes = np.concatenate([np.abs(line.band.middle) for line in lines])
    largest = sizes[np.isfinite(sizes)].max(initial=0.0)
    if largest and not _PLAIN[0] < largest < _PLAIN[1]:
        y |= {"tickformat": "~e"}
    return traces, {"xaxis": x, "yaxis": y, "showlegend": len(lines) > 1}


def _band_and_line(
    view: View, tables: SweepTables, line: Line, opacity: float
) -> list[dict[str, Any]]:
    points = _thin(len(line.x))
    x, (middle, low, high) = line.x[points], (part[points] for part in line.band)
    mark = tables.marks[line.group]
    look, stairs = _look(mark, len(points)), view.metric.stairs
    look["line"]["shape"] = "hv" if stairs else "linear"
    common = {"type": "scatter", "mode": "lines", "legendgroup": line.group}
    silent = common | {"hoverinfo": "skip", "showlegend": False}
    traces = []
    if np.isfinite(low).any():
        # An axis from zero does not end below it only for a band.
        from_zero = view.metric.from_zero and not (middle < 0).any()
        bottom = np.maximum(low, 0) if from_zero else low
        places, top = x, high
        if stairs:  # written out, as the way back would have steps of the other kind
            places = np.repeat(x, 2)[1:]
            bottom, top = (np.repeat(edge, 2)[:-1] for edge in (bottom, high))
        edges = np.concatenate([bottom, top[::-1]])
        band = {"fill": "toself", "fillcolor": _pale(mark.color, opacity), "line": {"width": 0}}
        around = {"x": np.concatenate([places, places[::-1]]), "y": narrowed(edges)}
        traces.append(silent | band | around)
    for places, values in line.seeds:
        thin = {"line": look["line"] | {"width": 0.8}, "opacity": 0.5}
        traces.append(silent | thin | {"x": places[points], "y": narrowed(values[points])})
    half = (high - low) / 2
    decimals = common_decimals(middle, half)
    digits = ",d" if view.over.whole else ",.3~f"  # in the words of d3-format
    shown = {
        "x": x,
        "y": narrowed(middle),
        "name": for_plotly(tables.series[line.group]),
        "customdata": [
            f"{_value(tables.band, *ends, decimals)} (n = {line.n})"
            for ends in zip(middle, low, high, strict=True)
        ],
        "hovertemplate": f"<b>{for_plotly(line.group)}</b><br>%{{x:{digits}}} {view.over.unit}<br>"
        f"{view.metric.heading} %{{customdata}}<extra></extra>",
    }
    return [*traces, common | look | shown]


def _value(band: str, middle: float, low: float, high: float, decimals: int) -> str:
    if band == "error":
        return mean_and_error(middle, high - middle, decimals)
    return with_interval(middle, low, high, decimals)


def _look(mark: Mark, points: int) -> dict[str, Any]:
    """Returns how a line looks, in plotly's words."""
    from matplotlib.colors import to_hex

    look: dict[str, Any] = {
        "line": {"color": to_hex(mark.color), "width": 2, "dash": _DASHES[mark.dash]}
    }
    symbol = _SYMBOLS[mark.marker % len(_SYMBOLS)]
    if symbol:
        size = [7 if place % 15 == 7 else 0 for place in range(points)]
        look |= {"mode": "lines+markers", "marker": {"symbol": symbol, "size": size}}
    return look


def _thin(count: int) -> np.ndarray:
    """Returns the places of at most `_POINTS` of `count` points, first and last included."""
    return np.unique(np.linspace(0, count - 1, _POINTS).round().astype(int))


def _as_json(traces: list[dict[str, Any]], layout: dict[str, Any]) -> str:
    """Returns a figure as plotly's JSON, checked by plotly."""
    from plotly.graph_objects import Figure

    common = {
        "template": "none",
        "font": FONT,
        "height": 460,
        "margin": {"l": 60, "r": 20, "t": 20, "b": 50},
        "hovermode": "closest",
        "hoverlabel": {"align": "left", "bgcolor": "white", "font": {"color": "#1d2430"}},
        "showlegend": True,
        "legend": {"itemsizing": "constant"},
    }
    return str(Figure(traces, {**common, **layout}).to_json())


def _pale(color: str, opacity: float) -> str:
    """Returns the colour of a line as that of its band."""
    from matplotlib.colors import to_rgb

    red, green, blue = (round(255 * part) for part in to_rgb(color))
    return f"rgba({red},{green},{blue},{opacity})"
