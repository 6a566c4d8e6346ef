"""Facets: panels of learning curves, the overview."""

from looks import data_of, set_look

from qdsweep.analysis.figures.archives import overview
from qdsweep.analysis.figures.curves import learning_curves
from qdsweep.analysis.figures.style import style


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
