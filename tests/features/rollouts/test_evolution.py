"""Animations of how archives filled."""

import json

import numpy as np
import pandas as pd
import pytest
from in_process import compute_sweep
from looks import data_of, texts
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image, ImageSequence
from support import TINY

from qdsweep.analysis.figures.style import style
from qdsweep.analysis.selection import read_tables
from qdsweep.features.rollouts.animations import (
    FRAMES,
    best_groups,
    evolution,
    evolution_limits,
    frames,
    stills,
)
from qdsweep.features.rollouts.animations import _read as read_evolution
from qdsweep.features.rollouts.film import MAX_BYTES, write_gif


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
    data = data_of(sweep)
    groups = [group for groups in best_groups(data).values() for group in groups]
    return {group: read_evolution(data, group) for group in groups}


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
    """The picture has the elites of metrics.csv's row, and the last one those of the archive."""
    for group, film in read(filled).items():
        assert film is not None
        assert film.iterations(FRAMES)[-1] == film.last == 60
        for iteration in (1, 7, 60):
            picture, moment = film.picture(iteration), film.moment(iteration)
            seen = set(film.cells[np.isfinite(picture)])
            if not group.startswith("CVT"):  # its cells may be smaller than a pixel
                assert len(seen) == moment["num_elites"]
            cells, objective = film.history.at(iteration)
            offset = film.run.summary["archive"]["qd_score_offset"]
            assert np.sum(objective - offset) == pytest.approx(moment["qd_score"], rel=1e-9)
            assert len(cells) == moment["num_elites"]
        arrays = film.run.arrays
        archive = film.run.archive
        low, high = np.array(film.run.summary["archive"]["ranges"]).T
        for measures, objective in zip(arrays["measures"], arrays["objective"], strict=True):
            share = (np.clip(measures, low, high - 1e-9) - low) / (high - low)
            height, width = film.cells.shape
            x, y = (share * (width, height)).astype(int)
            if group.startswith("CVT"):  # a pixel may be on a border
                middle = low + (np.array([x, y]) + 0.5) / (width, height) * (high - low)
                assert film.cells[y, x] == archive.index_of_single(middle)
            else:
                assert film.picture(60)[y, x] == objective


def test_frames_share_one_colour_scale_and_have_the_line_of_their_group(filled):
    film = read(filled)["MAP-Elites"]
    with style():
        first, *_, last = frames(film, evolution_limits([film], None))
    assert first.size == last.size
    bar = (330, 100, 420, 380)  # the colour bar and its numbers
    np.testing.assert_array_equal(np.asarray(first.crop(bar)), np.asarray(last.crop(bar)))
    pixels = np.asarray(last, dtype=float)
    line = np.abs(pixels - 255 * np.array(to_rgb(film.mark.color))).max(axis=-1) < 12
    assert line.sum(axis=1).max() > 150  # pixels of one row, half of the axes' width


def test_the_colour_bar_has_an_arrow_where_a_frame_has_objectives_beyond_it(filled, monkeypatch):
    film = read(filled)["MAP-Elites"]
    drawn, colorbar = [], Figure.colorbar

    def listening(*words, **look):
        drawn.append(look["extend"])
        return colorbar(*words, **look)

    monkeypatch.setattr(Figure, "colorbar", listening)
    low, high = evolution_limits([film], None)
    worst = np.nanmin(film.picture(1))
    assert worst < low, "the first elites are worse than the last ones"
    for limits in ((low, high), (worst, high - 1.0), (-1e9, 1e9)):
        frames(film, limits)
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
    films = read(sweep)
    short, long = films["iterations 5"], films["iterations 12"]
    assert (short.last, long.last) == (5, 12)
    assert short.run.path == long.run.path
    assert np.isfinite(short.picture(5)).sum() < np.isfinite(long.picture(12)).sum()


def test_the_stills_of_a_short_run_show_each_moment_once(tmp_path):
    experiment = {**TINY, "algorithm": "map_elites", "iterations": 2}
    sweep = compute_sweep(tmp_path / "results", experiment, "::: seed 1")
    data, films = data_of(sweep), read(sweep)
    (scale,) = data.score_scales
    with style():
        figure = stills("evolution", scale, list(films.values()), data).figure
    moments = [text for text in texts(figure) if "evaluations" in text]
    assert len(moments) == len(set(moments)) == 2, "1/64, 1/16 and 1/4 are the first iteration"


def test_runs_without_a_history_are_left_out_and_named(tmp_path, capsys):
    results = tmp_path / "results"
    sweep = compute_sweep(
        results,
        {**TINY, "algorithm": {"preset": "map_elites", "archive": {"type": "sliding_boundaries"}}},
        "::: seed 1 2",
    )
    evolution(sweep, results / "runs")
    assert "history.npz" in capsys.readouterr().err
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
