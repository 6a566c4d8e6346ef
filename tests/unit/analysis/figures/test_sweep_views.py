"""Views of a sweep's parameters."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from in_process import compute_sweep
from looks import data_of
from support import TINY

from qdsweep.analysis.figures.combinations import axis_of, combinations
from qdsweep.analysis.figures.figure import Omitted
from qdsweep.analysis.figures.learning_curves import learning_curves
from qdsweep.analysis.figures.style import style
from qdsweep.analysis.figures.sweep_views import one_slice, sweep_views
from qdsweep.analysis.statistics import half_width
from qdsweep.text import TIMES

TITLES = {"map_elites": "MAP-Elites", "cma_me": "CMA-ME"}
SWEEP = """
::: algorithm map_elites cma_me ::: batch_size 4 8 ::: domain.step 0.01 2 ::: seed 1 2
"""


def as_text(value):
    return value if isinstance(value, str) else f"{value:g}"


def views(sweep):
    with style():
        drawn = sweep_views(data_of(sweep))
    return {view.name: view for view in drawn}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two algorithms, two parameters of numbers, two seeds: 16 runs of six iterations."""
    results = tmp_path_factory.mktemp("made") / "results"
    return compute_sweep(results, {**TINY, "iterations": 6}, SWEEP)


@pytest.fixture(scope="module")
def drawn(made):
    return views(made)


@pytest.fixture(scope="module")
def combined(made):
    (alike,) = combinations(data_of(made))
    return alike


def test_axes_are_to_scale():
    linear = axis_of("batch_size", ["16", "4", "8"])
    assert linear.values == ["4", "8", "16"]
    np.testing.assert_allclose(linear.places(["4", "8", "16"]), [0, 1 / 3, 1])
    log = axis_of("domain.step", ["0.01", "0.1", "2"])
    assert log.log and log.label == "step"
    np.testing.assert_allclose(log.places(["0.1"]), np.log(10) / np.log(200))
    assert not axis_of("x", ["0", "1000"]).log, "0 has no logarithm"
    assert not axis_of("x", ["1", "99"]).log
    for texts in (["b", "a", "c"], ["1", "2", "null"], ["1", "NaN", "2"], ["true", "false", "x"]):
        categories = axis_of("x", texts)
        assert categories.numbers is None
        np.testing.assert_allclose(categories.places(texts), [0, 0.5, 1])


def test_combinations_are_means_over_seeds(made, combined):
    assert combined.names == ["algorithm", "batch_size", "domain.step"]
    summary = pd.read_csv(made / "summary.csv")
    assert len(combined.table) == 8
    for row in combined.table.to_dict("records"):
        runs = summary[
            (summary["algorithm"].map(TITLES) == row["algorithm"])
            & (summary["batch_size"] == int(row["batch_size"]))
            & (summary["domain.step"] == float(row["domain.step"]))
        ]["norm_qd_score"]
        assert row["n"] == len(runs) == 2
        assert row["mean"] == pytest.approx(runs.mean(), rel=1e-12)
        assert row["se"] == pytest.approx(runs.sem(), rel=1e-9)


def test_the_shape_of_the_sweep_decides_what_there_is(drawn, snapshot):
    names = ["parallel_coordinates", "slice_batch_size", "slice_domain.step", "pairs"]
    assert list(drawn) == names
    assert "\n".join(f"{name}: {drawn[name].caption}" for name in names) == snapshot
    assert {view.section for view in drawn.values()} == {"Sweep"}
    assert all(len(view.data) for view in drawn.values())


def test_a_line_ends_at_its_score(combined, drawn):
    ax = drawn["parallel_coordinates"].figure.axes[0]
    segments = ax.collections[0].get_segments()
    scores = ax.collections[0].get_array()
    assert len(segments) == 8
    low, high = combined.table["mean"].min(), combined.table["mean"].max()
    for segment, score in zip(segments, scores, strict=True):
        assert segment[-1][1] == pytest.approx((score - low) / (high - low))
    assert np.all(np.diff(scores) >= 0), "the best on top"
    best = combined.table.loc[combined.table["mean"].idxmax()]
    expected = [float(axis.places([best[axis.name]])[0]) for axis in combined.axes]
    np.testing.assert_allclose([point[1] for point in segments[-1]], [*expected, 1.0])


def test_slices_have_a_line_for_each_other_combination(made, combined, drawn):
    lines = drawn["slice_batch_size"].figure.axes[0].containers
    assert len(lines) == 4  # two algorithms, two steps
    assert not any(np.ptp(line.lines[2][0].get_segments(), axis=1)[:, 1].any() for line in lines)
    row = combined.table[
        (combined.table["algorithm"] == "CMA-ME") & (combined.table["domain.step"] == "2")
    ].sort_values("batch_size", key=lambda texts: texts.astype(int))
    more = replace(combined, table=combined.table.assign(n=4))  # two seeds have no interval
    axis = next(axis for axis in more.axes if axis.name == "batch_size")
    lines = one_slice(more, axis, "slice", "", data_of(made).marks).figure.axes[0].containers
    (line,) = (c for c in lines if c.get_label() == "CMA-ME, step 2")
    np.testing.assert_allclose(line.lines[0].get_xdata().astype(float), [4, 8])
    np.testing.assert_allclose(line.lines[0].get_ydata().astype(float), row["mean"])
    (bars,) = line.lines[2]
    lengths = [abs(end[1] - start[1]) / 2 for start, end in bars.get_segments()]
    np.testing.assert_allclose(lengths, half_width(row["se"], 4), rtol=1e-6)
    assert drawn["slice_domain.step"].figure.axes[0].get_xscale() == "log"


def test_pairs_are_marginal_means(made, drawn):
    summary = pd.read_csv(made / "summary.csv")
    summary["algorithm"] = summary["algorithm"].map(TITLES)
    data = drawn["pairs"].data
    assert len(data) == 3 * 4
    for cell in data.to_dict("records"):
        x, y = (summary[cell[f"{axis}_name"]].map(as_text) == cell[axis] for axis in ("x", "y"))
        runs = summary[x & y]["norm_qd_score"]
        assert cell["mean"] == pytest.approx(runs.mean(), rel=1e-12)
        assert cell["n"] == len(runs)


def test_scores_that_do_not_compare_have_views_of_their_own(tmp_path):
    sweep = compute_sweep(
        tmp_path / "results",
        {**TINY, "algorithm": "map_elites", "iterations": 2},
        "::: archive.dims [12,12] [9,9] ::: batch_size 4 8 ::: domain.step 0.1 0.5 ::: seed 1 2",
    )
    apart = views(sweep)
    assert {"pairs", "pairs_2", "parallel_coordinates_2", "slice_batch_size_2"} <= set(apart)
    for name, size in (("pairs", f"12 {TIMES} 12"), ("pairs_2", f"9 {TIMES} 9")):
        assert size in apart[name].caption
        assert len(apart[name].data) == 4


def test_scattered_values_are_dots_and_no_heatmap(tmp_path):
    """A random search: no two rows share a value."""
    sweep = compute_sweep(
        tmp_path / "results",
        {**TINY, "algorithm": "map_elites", "iterations": 2},
        "::: batch_size 4 5 6 7 :::+ domain.step 0.1 0.5 0.3 0.7",
    )
    scattered = views(sweep)
    assert list(scattered) == ["parallel_coordinates", "slice_batch_size", "slice_domain.step"]
    ax = scattered["slice_batch_size"].figure.axes[0]
    assert len(ax.collections[0].get_offsets()) == 4


def test_of_one_name_there_is_a_slice_and_of_seeds_nothing(tmp_path):
    experiment = {**TINY, "algorithm": "map_elites", "iterations": 2}
    numbers = compute_sweep(tmp_path / "a", experiment, "::: batch_size 4 8 ::: seed 1 2")
    assert list(views(numbers)) == ["slice_batch_size"]
    seeds = compute_sweep(tmp_path / "b", experiment, "::: seed 1 2")
    assert views(seeds) == {}
    names = compute_sweep(tmp_path / "c", experiment, "::: algorithm map_elites cma_me")
    assert views(names) == {}, "the table has all of it"


def test_what_has_one_value_everywhere_is_not_drawn(made):
    data = data_of(made)
    data.table["norm_qd_score_mean"] = 0.5
    data.curves["obj_max_mean"] = 100.0
    with style():
        omitted = {view.name for view in sweep_views(data) if isinstance(view, Omitted)}
        curves = learning_curves(data)
    assert {"parallel_coordinates", "pairs", "slice_batch_size"} <= omitted
    assert "Best objective: 100 " in curves.caption
    assert "Best objective" not in [ax.get_ylabel() for ax in curves.figure.axes]


def test_the_overview_shows_each_algorithm_once(made):
    data = data_of(made)
    (groups,) = data.score_scales.values()
    shown = data.best_of_algorithms(groups, 3)
    assert sorted(group.split(",")[0] for group in shown) == ["CMA-ME", "MAP-Elites"]
    assert data.best(groups, 1)[0] in shown
    own = [group for group in groups if group.startswith("CMA-ME")]
    assert data.best_of_algorithms(own, 3) == data.best(own, 3)
