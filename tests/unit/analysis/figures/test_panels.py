"""Facets: panels of learning curves, the overview."""

import json

from looks import data_of, set_look
from matplotlib.legend import Legend

from qdsweep.analysis.figures.archive_pictures import overview
from qdsweep.analysis.figures.archive_profile import archive_profiles
from qdsweep.analysis.figures.learning_curves import learning_curves
from qdsweep.analysis.figures.style import style
from qdsweep.analysis.page.interactive import interactive_figures


def test_learning_curves_have_a_panel_for_each_facet(sweep):
    set_look(sweep, facets="iterations")
    data = data_of(sweep)
    assert {key: len(groups) for key, groups in data.panels.items()} == {
        "iterations 6": 2,
        "iterations 12": 2,
    }
    figure = learning_curves(data).figure
    axes = [ax for ax in figure.axes if ax.get_visible()]
    assert len(axes) == 2 * 4
    for ax in axes:
        assert [line.get_label() for line in ax.lines] == ["MAP-Elites", "CMA-ME"]
    colors = {tuple(line.get_color() for line in ax.lines) for ax in axes}
    assert len(colors) == 1  # a series has its colour in every facet
    for first, second in zip(axes[:4], axes[4:], strict=True):
        assert first.get_ylim() == second.get_ylim()


def test_the_overview_shows_the_best_facet_and_names_it(sweep, snapshot):
    set_look(sweep, facets="iterations")
    data = data_of(sweep)
    scores = data.table.set_index("group")["qd_score_mean"]
    best = data.facets[scores.idxmax()]
    assert best == "iterations 12", "the other one comes first"
    with style():
        drawn = overview(data)
    assert set(drawn.data["group"]) == set(data.panels[best])
    assert drawn.caption == snapshot
    assert drawn.figure.get_suptitle() == best


def test_a_single_line_has_no_legend(sweep):
    data = data_of(sweep)
    one = data.of(list(data.series)[:1])
    for draw in (learning_curves, archive_profiles, overview):
        with style():
            counts = [len(draw(shown).figure.findobj(Legend)) for shown in (data, one)]
        assert counts == [1, 0], draw
    for shown, has_legend in ((data, True), (one, False)):
        (curves,) = (f for f in interactive_figures(shown) if f.name == "curves-1")
        layouts = [json.loads(view)["layout"] for view in curves.views.values()]
        assert {layout["showlegend"] for layout in layouts} == {has_legend}
