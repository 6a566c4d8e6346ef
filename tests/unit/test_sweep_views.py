"""Views of a sweep's parameters, and how archives filled, of real small sweeps."""

import json

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image, ImageSequence
from support import TINY, compute_sweep

from qdsweep.analysis.figures.combinations import axis_of, combinations
from qdsweep.analysis.figures.evolution import FRAMES, best_groups, color_limits, evolution, frames
from qdsweep.analysis.figures.evolution import _read as read_evolution
from qdsweep.analysis.figures.style import style
from qdsweep.analysis.figures.sweep_views import sweep_views
from qdsweep.analysis.selection import read_tables
from qdsweep.analysis.text import TIMES
from qdsweep.animation import MAX_BYTES, write_gif
from qdsweep.records.plan import read_plan
from qdsweep.records.sweep_dir import SweepDir

SWEEP = """
::: algorithm map_elites cma_me ::: batch_size 4 8 ::: domain.step 0.01 2 ::: seed 1 2
"""


def as_text(value):
    return value if isinstance(value, str) else f"{value:g}"


def views(sweep):
    with style():
        drawn = sweep_views(read_plan(SweepDir(sweep)), read_tables(sweep))
    return {one.name: one for one in drawn}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two algorithms, two parameters of numbers, two seeds: 16 runs of six iterations."""
    results = tmp_path_factory.mktemp("made") / "results"
    return compute_sweep(results, {**TINY, "iterations": 6}, SWEEP)


@pytest.fixture(scope="module")
def drawn(made):
    return views(made)


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


def test_combinations_are_means_over_seeds(made):
    (found,) = combinations(read_plan(SweepDir(made)), read_tables(made))
    assert found.names == ["algorithm", "batch_size", "domain.step"]
    summary = pd.read_csv(made / "summary.csv")
    assert len(found.table) == 8
    for row in found.table.to_dict("records"):
        runs = summary[
            (summary["algorithm"] == row["algorithm"])
            & (summary["batch_size"] == int(row["batch_size"]))
            & (summary["domain.step"] == float(row["domain.step"]))
        ]["norm_qd_score"]
        assert row["n"] == len(runs) == 2
        assert row["mean"] == pytest.approx(runs.mean(), rel=1e-12)
        assert row["se"] == pytest.approx(runs.sem(), rel=1e-9)


def test_the_shape_of_the_sweep_decides_what_there_is(drawn):
    assert list(drawn) == [
        "parallel_coordinates",
        "slice_batch_size",
        "slice_domain.step",
        "pairs",
    ]
    assert {one.section for one in drawn.values()} == {"Sweep"}
    assert all(len(one.data) for one in drawn.values())


def test_a_line_ends_at_its_score(made, drawn):
    (found,) = combinations(read_plan(SweepDir(made)), read_tables(made))
    ax = drawn["parallel_coordinates"].figure.axes[0]
    segments = ax.collections[0].get_segments()
    scores = ax.collections[0].get_array()
    assert len(segments) == 8
    low, high = found.table["mean"].min(), found.table["mean"].max()
    for segment, score in zip(segments, scores, strict=True):
        assert segment[-1][1] == pytest.approx((score - low) / (high - low))
    assert np.all(np.diff(scores) >= 0), "the best on top"
    best = found.table.loc[found.table["mean"].idxmax()]
    expected = [float(axis.places([best[axis.name]])[0]) for axis in found.axes]
    np.testing.assert_allclose([point[1] for point in segments[-1]], [*expected, 1.0])


def test_slices_have_a_line_for_each_other_combination(made, drawn):
    one = drawn["slice_batch_size"]
    lines = one.figure.axes[0].containers
    assert len(lines) == 4  # two algorithms, two steps
    (found,) = combinations(read_plan(SweepDir(made)), read_tables(made))
    row = found.table[
        (found.table["algorithm"] == "cma_me") & (found.table["domain.step"] == "2")
    ].sort_values("batch_size", key=lambda texts: texts.astype(int))
    (line,) = (c for c in lines if c.get_label() == "cma_me, step 2")
    np.testing.assert_allclose(line.lines[0].get_xdata().astype(float), [4, 8])
    np.testing.assert_allclose(line.lines[0].get_ydata().astype(float), row["mean"])
    (bars,) = line.lines[2]
    lengths = [abs(end[1] - start[1]) / 2 for start, end in bars.get_segments()]
    np.testing.assert_allclose(lengths, row["se"], rtol=1e-6)
    assert drawn["slice_domain.step"].figure.axes[0].get_xscale() == "log"
    assert "2 seeds" in one.caption


def test_pairs_are_marginal_means(made, drawn):
    summary = pd.read_csv(made / "summary.csv")
    data = drawn["pairs"].data
    assert len(data) == 3 * 4
    for cell in data.to_dict("records"):
        x, y = (summary[cell[f"{axis}_name"]].map(as_text) == cell[axis] for axis in ("x", "y"))
        runs = summary[x & y]["norm_qd_score"]
        assert cell["mean"] == pytest.approx(runs.mean(), rel=1e-12)
        assert cell["n"] == len(runs)
    assert "3 pairs" not in drawn["pairs"].caption, "all are shown"


def test_scores_that_do_not_compare_have_views_of_their_own(tmp_path):
    sweep = compute_sweep(
        tmp_path / "results",
        {**TINY, "algorithm": "map_elites", "iterations": 2},
        "::: archive.dims [12,12] [9,9] ::: batch_size 4 8 ::: domain.step 0.1 0.5 ::: seed 1 2",
    )
    found = views(sweep)
    assert {"pairs", "pairs_2", "parallel_coordinates_2", "slice_batch_size_2"} <= set(found)
    for name, size in (("pairs", f"12 {TIMES} 12"), ("pairs_2", f"9 {TIMES} 9")):
        assert size in found[name].caption
        assert len(found[name].data) == 4


def test_scattered_values_are_dots_and_no_heatmap(tmp_path):
    """A random search: no two rows share a value."""
    sweep = compute_sweep(
        tmp_path / "results",
        {**TINY, "algorithm": "map_elites", "iterations": 2},
        "::: batch_size 4 5 6 7 :::+ domain.step 0.1 0.5 0.3 0.7",
    )
    found = views(sweep)
    assert list(found) == ["parallel_coordinates", "slice_batch_size", "slice_domain.step"]
    ax = found["slice_batch_size"].figure.axes[0]
    assert len(ax.collections[0].get_offsets()) == 4
    assert "a dot" in found["slice_batch_size"].caption


def test_one_name_has_a_slice_alone_and_seeds_nothing(tmp_path):
    experiment = {**TINY, "algorithm": "map_elites", "iterations": 2}
    one = compute_sweep(tmp_path / "a", experiment, "::: batch_size 4 8 ::: seed 1 2")
    assert list(views(one)) == ["slice_batch_size"]
    seeds = compute_sweep(tmp_path / "b", experiment, "::: seed 1 2")
    assert views(seeds) == {}
    names = compute_sweep(tmp_path / "c", experiment, "::: algorithm map_elites cma_me")
    assert views(names) == {}


# Evolution


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A grid, a result archive's grid, CVT, and an archive without cells."""
    results = tmp_path_factory.mktemp("filled") / "results"
    sweep = compute_sweep(
        results,
        {**TINY, "iterations": 60},
        "::: algorithm cma_mae map_elites cvt_map_elites ::: seed 1 2",
    )
    evolution(sweep, results / "runs")
    return sweep


def read(sweep):
    tables = read_tables(sweep)
    runs = sweep.parents[1] / "runs"
    groups = [group for groups in best_groups(tables).values() for group in groups]
    return {group: read_evolution(tables, group, runs) for group in groups}


def test_an_animation_of_each_median_run(filled):
    tables = read_tables(filled)
    ids = {str(tables.median_run(group)["id"]) for group in tables.table["group"]}
    folder = filled / "plots/evolution"
    assert {path.stem for path in folder.glob("*.gif")} == ids
    for path in folder.glob("*.gif"):
        assert path.stat().st_size < MAX_BYTES
        with Image.open(path) as image:
            assert image.info["loop"] == 0
            times = [frame.info["duration"] for frame in ImageSequence.Iterator(image)]
            assert 10 <= len(times) <= FRAMES
            assert 5000 <= sum(times) <= 7500


def test_frames_are_the_archive_at_their_iteration(filled):
    """Cell by cell: the picture has the elites of metrics.csv's row, and the last the archive's."""
    for group, one in read(filled).items():
        assert one is not None
        assert one.iterations(FRAMES)[-1] == one.last == 60
        for iteration in (1, 7, 60):
            picture, moment = one.picture(iteration), one.moment(iteration)
            seen = set(one.cells[np.isfinite(picture)])
            if group != "cvt_map_elites":  # a cell of it may be smaller than a pixel
                assert len(seen) == moment["num_elites"]
            cells, objective = one.history.at(iteration)
            offset = one.run.summary["archive"]["qd_score_offset"]
            assert np.sum(objective - offset) == pytest.approx(moment["qd_score"], rel=1e-9)
            assert len(cells) == moment["num_elites"]
        arrays = one.run.arrays
        archive = one.run.archive
        low, high = np.array(one.run.summary["archive"]["ranges"]).T
        for measures, objective in zip(arrays["measures"], arrays["objective"], strict=True):
            share = (np.clip(measures, low, high - 1e-9) - low) / (high - low)
            height, width = one.cells.shape
            x, y = (share * (width, height)).astype(int)
            if group == "cvt_map_elites":  # the pixel may be on a border
                middle = low + (np.array([x, y]) + 0.5) / (width, height) * (high - low)
                assert one.cells[y, x] == archive.index_of_single(middle)
            else:
                assert one.picture(60)[y, x] == objective


def test_frames_share_one_colour_scale(filled):
    one = read(filled)["map_elites"]
    with style():
        pictures = frames(one, color_limits([one]))
    assert len({picture.size for picture in pictures}) == 1
    bar = (330, 100, 420, 380)  # the colour bar and its numbers
    first, *_, last = [np.asarray(picture.crop(bar)) for picture in pictures]
    np.testing.assert_array_equal(first, last)


def test_the_colour_bar_has_an_arrow_where_a_frame_has_objectives_beyond_it(filled, monkeypatch):
    one = read(filled)["map_elites"]
    drawn = []
    colorbar = Figure.colorbar

    def listening(*words, **look):
        drawn.append(look["extend"])
        return colorbar(*words, **look)

    monkeypatch.setattr(Figure, "colorbar", listening)
    low, high = color_limits([one])
    first = one.picture(1)
    assert np.nanmin(first) < low, "the first elites are worse than the last ones"
    frames(one, (low, high))
    frames(one, (np.nanmin(first), high - 1.0))
    frames(one, (-1e9, 1e9))
    assert drawn == ["min", "max", "neither"]


def test_the_stills_have_their_data(filled):
    folder = filled / "plots/evolution"
    (index,) = json.loads((folder / "figures.json").read_text())[:1]
    assert index["section"] == "Evolution"
    data = pd.read_csv(folder / f"{index['name']}.csv")
    for suffix in (".pdf", ".png", ".svg"):
        assert (folder / f"{index['name']}{suffix}").exists()
    run = data["run"].iloc[0]
    metrics = pd.read_csv(filled.parents[1] / "runs" / run / "metrics.csv")
    part = data[data["run"] == run].merge(metrics, on="iteration", suffixes=("", "_expected"))
    assert part["evaluations"].iloc[-1] == metrics["evaluations"].iloc[-1]
    np.testing.assert_array_equal(part["qd_score"], part["qd_score_expected"])


def test_a_row_of_a_lower_budget_ends_there(tmp_path):
    experiment = {**TINY, "algorithm": "map_elites"}
    sweep = compute_sweep(tmp_path / "results", experiment, "::: iterations 5 12")
    found = read(sweep)
    assert {group: one.last for group, one in found.items()} == {
        "iterations 5": 5,
        "iterations 12": 12,
    }
    short, long = found["iterations 5"], found["iterations 12"]
    assert short.run.path == long.run.path
    assert np.isfinite(short.picture(5)).sum() < np.isfinite(long.picture(12)).sum()


def test_runs_without_a_history_are_left_out_with_a_line(tmp_path, capsys):
    results = tmp_path / "results"
    sweep = compute_sweep(
        results,
        {**TINY, "algorithm": {"preset": "map_elites", "archive": {"type": "sliding_boundaries"}}},
        "::: seed 1 2",
    )
    evolution(sweep, results / "runs")
    assert "no history.npz" in capsys.readouterr().err
    assert list((sweep / "plots/evolution").glob("*.gif")) == []
    assert json.loads((sweep / "plots/evolution/figures.json").read_text()) == []


def test_an_animation_that_is_too_large_loses_frames(tmp_path):
    noise = np.random.default_rng(0).integers(0, 255, (60, 200, 200, 3), dtype=np.uint8)
    write_gif(tmp_path / "a.gif", [Image.fromarray(pixels) for pixels in noise], 3.0)
    assert (tmp_path / "a.gif").stat().st_size <= MAX_BYTES
    with Image.open(tmp_path / "a.gif") as image:
        times = [frame.info["duration"] for frame in ImageSequence.Iterator(image)]
    assert 2 <= len(times) < 60
    assert sum(times) == pytest.approx(4500, abs=150)
