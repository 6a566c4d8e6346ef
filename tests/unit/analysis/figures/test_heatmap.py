"""Maps of archives."""

from types import SimpleNamespace

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from refusals import names_all

from qdsweep.analysis.figures.heatmap import add_color_bar, color_limits, draw_slices


def test_slices_of_three_measures_have_one_colour_scale():
    archive = {"type": "grid", "dims": [3, 2, 2], "ranges": [(0, 1)] * 3}
    grid = np.arange(12.0)
    arrays = {"index": np.arange(12), "objective": grid}
    run = SimpleNamespace(summary={"archive": archive}, arrays=arrays)
    ax, colors = Figure().subplots(), ScalarMappable(Normalize(-5, 20), "magma")
    draw_slices(ax, run, ["x", "y", "z"], colors)
    maps = [part.collections[0] for part in ax.child_axes]
    assert len(maps) == 2
    for place, drawn in enumerate(maps):
        assert drawn.get_clim() == (-5, 20) and drawn.cmap == colors.cmap
        np.testing.assert_array_equal(drawn.get_array(), grid.reshape(3, 2, 2)[:, :, place].T)


MAP, LINE = {"ranges": [[0, 1]] * 2}, {"ranges": [[0, 1]]}


def test_a_few_outliers_leave_most_colours_to_the_other_elites():
    bulk = np.linspace(80.0, 100.0, 990)
    far = np.linspace(-7000.0, 0.0, 10)
    low, high = color_limits([far, bulk], {**MAP, "objective_range": [-50, 0]}, None)
    assert 70 < low < 80 and high == 100
    assert color_limits([-bulk, -far], MAP, None) == (-high, -low)
    assert color_limits([bulk], MAP, None) == (80, 100), "without outliers"
    assert color_limits([far, bulk], LINE, None) == (-7000, 100), "the axis of the bars"
    assert color_limits([far[:1], np.full(999, 5.0)], MAP, None) == (-7000, 5), "a plateau"
    assert color_limits([far, bulk], MAP, (0.0, 50.0)) == (0, 50)
    lucky, own = "Objective, as reported", {**MAP, "objective_range": [-50, 90]}
    assert color_limits([bulk], own, None, lucky) == (80, 90), "no lucky one above the range"
    assert color_limits([bulk], own, None) == (80, 100)
    assert color_limits([np.zeros(0)], MAP, None) == (0, 1)
    assert color_limits([np.zeros(3)], MAP, None) == (-0.5, 0.5)


def test_the_colour_bar_shows_what_it_cuts():
    objectives = [np.array([-120.0, 30.0]), np.array([np.nan, 99.0]), np.full(2, np.nan)]
    for limits, ends in (
        ((0.0, 50.0), ("\u2212120", "99")),
        ((0.0, 99.0), ("\u2212120", "99")),
        ((-200.0, 200.0), ()),
    ):
        figure = Figure()
        ax = figure.subplots()
        add_color_bar(figure, [ax], objectives, limits)
        label = figure.axes[1].get_ylabel()
        names_all(label, "Objective", *ends)
        assert ends or label == "Objective"
