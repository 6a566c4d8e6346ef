"""Interactive figures of the page: learning curves and parallel coordinates."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.analysis.figures.style import line_style
from qdsweep.analysis.page.coordinates import parallel_coordinates
from qdsweep.analysis.page.words import for_plotly
from qdsweep.analysis.plan import Plan
from qdsweep.analysis.selection import Tables, band_text
from qdsweep.analysis.tables.comparisons import short_names
from qdsweep.analysis.text import common_decimals, mean_and_error

if TYPE_CHECKING:
    import pandas as pd

MAX_LINES = 28  # there are so many pairs of colour and dash
MAX_PANELS = 6
_POINTS = 150
_DASHES = ("solid", "dash", "dot", "dashdot")  # style.DASHES, as plotly calls them
FONT = {"family": "system-ui, Segoe UI, Roboto, Helvetica, Arial, sans-serif", "size": 13}


@dataclass(frozen=True)
class View:
    """What a figure of learning curves shows over what.

    Attributes:
        metric: Of curves.csv.
        label: What it is called.
        over: The column of curves.csv that is the horizontal axis.
        axis: What that is called.
        unit: What its numbers count.
        digits: How they are written, in the words of d3-format.
    """

    metric: str
    label: str
    over: str = "evaluations"
    axis: str = "Evaluations"
    unit: str = "evaluations"
    digits: str = ",d"


_VIEWS = (
    View("norm_qd_score", "Normalised QD score"),
    View("qd_score", "QD score"),
    View("coverage", "Coverage (%)"),
    View("obj_max", "Best objective"),
    View("qd_score", "QD score", "seconds_mean", "Wall time (s)", "s", ",.3~f"),
)


@dataclass(frozen=True)
class Interactive:
    """A figure that plotly draws in the page.

    Attributes:
        name: Its id in the page.
        title: What it shows, a few words.
        caption: Whole sentences.
        views: What a reader may choose to see -> the figure as plotly's JSON, as text.
    """

    name: str
    title: str
    caption: str
    views: dict[str, str]


def interactive_figures(plan: Plan, tables: Tables) -> list[Interactive]:
    """Returns learning curves of each panel and parallel coordinates of each scale.

    Args:
        plan: The sweep, with the labels that figures have.
        tables: Its tables, likewise.
    """
    found = []
    for place, (about, groups) in enumerate(_parts(tables.panels)):
        views, caption = _learning_curves(tables, groups)
        title = f"Learning curves{about}"
        found.append(Interactive(f"curves-{place + 1}", title, caption, views))
    for place, (about, groups) in enumerate(_parts(tables.scales)):
        if len(groups) > 2:
            (traces, layout), caption = parallel_coordinates(plan, tables, groups)
            views = {"": _as_json(traces, layout | {"dragmode": "select"})}
            title = f"Parallel coordinates{about}"
            found.append(Interactive(f"coordinates-{place + 1}", title, caption, views))
    return found


def _parts(parts: dict[str, list[str]]) -> list[tuple[str, list[str]]]:
    """Returns the end of a title and the groups of each panel or scale, at most `MAX_PANELS`."""
    names = short_names(list(parts)) if len(parts) > 1 else [""]
    titles = [f": {name}" if name else "" for name in names]
    return list(zip(titles, parts.values(), strict=True))[:MAX_PANELS]


def plotly_source() -> str:
    """Returns plotly.js, minified, which the page carries (MIT License)."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def _learning_curves(tables: Tables, groups: list[str]) -> tuple[dict[str, str], str]:
    """Returns the views and the caption of learning curves."""
    shown = tables.best(groups, MAX_LINES)
    curves = tables.curves[tables.curves["group"].isin(shown)]
    views = {
        f"{view.label} over {view.axis.lower()}": _as_json(*_draw(view, tables, curves, shown))
        for view in _VIEWS
        if curves[f"{view.metric}_mean"].notna().any()
    }
    caption = (
        f"Lines and bands: {band_text(tables.counts(shown))}. Point at a line for its values;"
        " click a name to hide its line, twice to see it alone."
    )
    if len(shown) < len(groups):
        caption += f" Shown: the best {len(shown)} of {len(groups)} groups."
    return views, caption


def _draw(
    view: View, tables: Tables, curves: "pd.DataFrame", groups: list[str]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Returns the traces and the axes of a view: a band and a line for each group."""
    opacity = 0.18 if len(groups) <= 8 else 0.07  # many bands would hide the lines
    traces = [
        trace
        for group in groups
        for trace in _band_and_line(view, tables, curves[curves["group"] == group], group, opacity)
    ]
    grid = {"gridcolor": "#e8ebef", "zerolinecolor": "#c8ced6", "automargin": True}
    grid["tickformat"] = ",~f"  # 9,000 and 0.25
    layout = {
        "xaxis": grid | {"title": {"text": view.axis}, "rangemode": "tozero"},
        "yaxis": grid
        | {"title": {"text": view.label}}
        | ({} if view.metric == "obj_max" else {"rangemode": "tozero"}),
    }
    return traces, layout


def _band_and_line(
    view: View, tables: Tables, curve: "pd.DataFrame", group: str, opacity: float
) -> list[dict[str, Any]]:
    from matplotlib.colors import to_hex

    factor = 100 if view.metric == "coverage" else 1
    kept = np.unique(np.linspace(0, len(curve) - 1, _POINTS).round().astype(int))
    x = curve[view.over].to_numpy(float)[kept]
    mean = curve[f"{view.metric}_mean"].to_numpy(float)[kept] * factor
    error = curve[f"{view.metric}_se"].to_numpy(float)[kept] * factor
    color = to_hex(line_style(tables.position[group])["color"])
    common = {"type": "scatter", "mode": "lines", "legendgroup": group}
    traces = []
    if np.isfinite(error).any():
        edges = np.concatenate([mean - error, (mean + error)[::-1]])
        band = {"fill": "toself", "fillcolor": _pale(color, opacity), "line": {"width": 0}}
        around = {"x": np.concatenate([x, x[::-1]]), "y": edges.astype(np.float32)}
        traces.append(common | band | around | {"hoverinfo": "skip", "showlegend": False})
    decimals, n = common_decimals(mean, error), int(curve["n"].iloc[0])
    pairs = zip(mean, error, strict=True)
    line = {
        "x": x,
        "y": mean.astype(np.float32),
        "name": for_plotly(tables.series[group]),
        "line": {
            "color": color,
            "width": 2,
            "dash": _DASHES[tables.position[group] % len(_DASHES)],
        },
        "customdata": [f"{mean_and_error(*pair, decimals)} (n = {n})" for pair in pairs],
        "hovertemplate": f"<b>{for_plotly(group)}</b><br>%{{x:{view.digits}}} {view.unit}<br>"
        f"{view.label} %{{customdata}}<extra></extra>",
    }
    return [*traces, common | line]


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
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"
