"""Helpers for tests of figures."""

import json

from results import forget_sums

SWEEP = "::: algorithm map_elites cma_me ::: seed 1 2 ::: iterations 6 12"


def set_look(sweep, **figures):
    path = forget_sums(sweep) / "plan.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"figures": figures}))


def runs_of(sweep):
    return sweep.parent.parent / "runs"


def data_of(sweep):
    """Returns the data of the figures and the page of a sweep."""
    from qdsweep.analysis.data import SweepData

    return SweepData.read(sweep, runs_of(sweep))


def texts(figure):
    return [text.get_text() for text in seen(figure)]


def seen(figure):
    """Yields every visible text of a figure, without ticks beyond their axis and hidden axes."""
    from matplotlib.axes import Axes
    from matplotlib.text import Text

    hidden = []
    for ax in figure.findobj(Axes):
        if not ax.get_visible():
            hidden += ax.findobj(Text)
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks():
                if not low <= tick.get_loc() <= high:
                    hidden += tick.findobj(Text)
    hidden = set(map(id, hidden))
    shown = [text for text in figure.findobj(Text) if id(text) not in hidden]
    return [text for text in shown if text.get_visible() and text.get_text().strip()]
