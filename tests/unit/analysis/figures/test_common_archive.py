"""Archives with other cells are rebinned."""

from collections import defaultdict

import numpy as np
import pytest
from in_process import compute_sweep
from looks import data_of, runs_of
from support import TINY

from qdsweep.analysis.figures.common_archive import coarsest, common_archives, rebin
from qdsweep.experiment.load import load


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
