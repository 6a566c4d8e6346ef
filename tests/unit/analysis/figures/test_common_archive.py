"""Archives with other cells are rebinned."""

from collections import defaultdict

import numpy as np
import pytest
from in_process import compute_sweep
from looks import data_of, runs_of
from support import TINY

from qdsweep.analysis.figures.common_archive import (
    MAX_FAMILIES,
    MAX_GROUPS,
    coarsest,
    common_archives,
    rebin,
)
from qdsweep.runs.load import load


def test_rebinning_keeps_the_best_of_each_coarse_cell(made):
    run = load(next(path.parent for path in runs_of(made).glob("*/archive.npz")))
    about = run.summary["archive"]
    own = (tuple(about["dims"]), tuple(map(tuple, about["ranges"])))
    assert rebin(run, own) == pytest.approx((run.summary["qd_score"], run.summary["coverage"]))
    best = defaultdict(lambda: -np.inf)
    for index, objective in zip(run.arrays["index"], run.arrays["objective"], strict=True):
        row, column = divmod(index, 12)
        best[row // 4, column // 4] = max(best[row // 4, column // 4], objective)
    score = sum(best.values()) - len(best) * about["qd_score_offset"]
    assert rebin(run, ((3, 3), own[1])) == pytest.approx((score, len(best) / 9))


def test_the_common_archive_has_the_coarsest_cells_over_all_ranges():
    grid = {"cells": 200, "dims": [10, 20], "ranges": [[-1, 1], [0, 3]]}
    fine = {"cells": 300, "dims": [30, 10], "ranges": [[-2, 0], [0, 1]]}
    cvt = {"cells": 64, "dims": None, "ranges": [[-1, 1], [0, 1]]}
    none = {"cells": None, "dims": None, "ranges": [[-9, 9], [-9, 9]]}
    assert coarsest([grid, fine, none]) == ((10, 10), ((-2.0, 1.0), (0.0, 3.0)))
    assert coarsest([grid, fine, cvt])[0] == (8, 8)


def test_archives_of_other_cells_share_a_figure_only_after_rebinning(tmp_path, tasks):
    text = "::: archive.dims '[12, 12]' '[4, 6]' ::: seed 1 2"
    sweep = compute_sweep(tmp_path / "results", {**TINY, "iterations": 4}, text)
    data = data_of(sweep)
    assert len(data.score_scales) == 2
    (drawn,) = common_archives(data)
    assert "4 \u00d7 6" in drawn.caption
    coarse = drawn.data.set_index("group").loc["dims [4, 6]"]
    table = data.table.set_index("group").loc["dims [4, 6]"]  # it already has these cells
    assert coarse["qd_score_mean"] == pytest.approx(table["qd_score_mean"])
    assert coarse["qd_score_se"] == pytest.approx(table["qd_score_se"])
    assert common_archives(data_of(tasks)) == []  # two domains


ARM = {
    "domain": {"preset": "arm", "solution_dim": 5},
    "algorithm": "map_elites",
    "archive": {"dims": [6, 6]},
    **{"num_emitters": 1, "batch_size": 10, "iterations": 3},
}


def drawn_points(figure):
    """The places of the dots and of the ends of their bars, of each pair of axes."""
    for ax in figure.axes:
        bars = [point for bar in ax.collections for path in bar.get_segments() for point in path]
        dots = [point for line in ax.lines for point in zip(*line.get_data(), strict=True)]
        yield ax, np.array([point[0] for point in (*bars, *dots)], float)


@pytest.mark.parametrize("lowest", [0, 80, 95])
def test_every_score_is_within_the_axes(tmp_path, lowest):
    """Scores are negative where most objectives are below the range."""
    domain = ARM["domain"] | {"objective_range": [lowest, 100]}
    text = "::: algorithm map_elites cvt_map_elites ::: seed 1 2 3"
    (drawn,) = common_archives(data_of(compute_sweep(tmp_path, ARM | {"domain": domain}, text)))
    assert (drawn.data["qd_score_mean"].min() < 0) == (lowest > 0)
    for ax, places in drawn_points(drawn.figure):
        low, high = ax.get_xlim()
        assert len(places) and (low <= places).all() and (places <= high).all()


def test_tasks_of_other_dimensions_share_no_axis(tmp_path):
    alone = compute_sweep(tmp_path / "a", ARM, "::: domain.solution_dim 4 5 6 ::: seed 1")
    assert common_archives(data_of(alone)) == []
    text = "::: domain.solution_dim 4 5 ::: algorithm map_elites cvt_map_elites ::: seed 1"
    (drawn,) = common_archives(data_of(compute_sweep(tmp_path / "b", ARM, text)))
    assert len(drawn.figure.axes) == 4, "a pair for each dimension"
    for extent in ("4, 4", "5, 5"):
        low, high = extent.split(", ")
        assert f"[\u2212{low}, {high}] \u00d7" in drawn.caption


def test_groups_and_tasks_that_are_not_drawn_are_counted(tmp_path):
    scales = " ".join(str(round(0.05 * n, 2)) for n in range(1, 10))
    text = f"::: algorithm map_elites cvt_map_elites ::: mutation_scale {scales} ::: seed 1"
    (drawn,) = common_archives(data_of(compute_sweep(tmp_path / "a", ARM, text)))
    assert len(drawn.data) == 18 and f"the {MAX_GROUPS} of 18 groups" in drawn.caption
    dims = " ".join(map(str, range(2, 3 + MAX_FAMILIES)))
    text = f"::: domain.solution_dim {dims} ::: algorithm map_elites cvt_map_elites ::: seed 1"
    (drawn,) = common_archives(data_of(compute_sweep(tmp_path / "b", ARM, text)))
    assert "Not shown: 2 groups" in drawn.caption
