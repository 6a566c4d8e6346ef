"""Archives are shown at the budget of their row."""

import numpy as np
import pytest
from in_process import compute_sweep
from looks import SWEEP, data_of, runs_of, texts
from own_parts import LOSING
from refusals import names_all
from results import forget_sums
from support import TINY

from qdsweep.analysis.figures.animations import Evolution
from qdsweep.analysis.figures.archive_profile import archive_profiles, objectives_of, reported_run
from qdsweep.analysis.figures.archives import heatmaps
from qdsweep.experiment.load import load
from qdsweep.records.history import ROW, read_history


def test_archives_are_shown_at_the_budget_of_their_row(made, tmp_path):
    drawn = heatmaps(data_of(made))
    short = compute_sweep(tmp_path / "results", TINY, SWEEP.replace("6 12", "6"))
    for group in ("MAP-Elites", "CMA-ME"):
        shown = drawn.data[drawn.data["group"] == f"{group}, iterations 6"]
        (run,) = set(shown["run"])
        arrays = load(runs_of(short) / run).arrays  # the same run, which ended there
        order = np.argsort(arrays["index"])
        assert len(shown) < (drawn.data["group"] == f"{group}, iterations 12").sum()
        np.testing.assert_array_equal(shown["cell"], arrays["index"][order])
        np.testing.assert_array_equal(
            shown["objective"], arrays["objective"][order].astype(np.float32)
        )


def test_an_earlier_archive_is_one_of_pyribs_with_the_row_s_score(made):
    data = data_of(made)
    for _, row in data.with_results.iterrows():
        stats = reported_run(runs_of(made), row).archive.stats
        assert float(stats.qd_score) == pytest.approx(row["qd_score"])
        assert float(stats.coverage) == pytest.approx(row["coverage"])


def test_a_cvt_archive_is_known_earlier_too(tmp_path):
    tiny = {**TINY, "algorithm": "cvt_map_elites", "archive": {"cells": 60}}
    sweep = compute_sweep(tmp_path / "results", tiny, "::: seed 1 ::: iterations 3 9")
    data = data_of(sweep)
    (early, late) = data.with_results.to_dict("records")
    assert early["num_elites"] < late["num_elites"]
    run = reported_run(runs_of(sweep), data.with_results.iloc[0])
    assert len(run.archive) == early["num_elites"]
    assert float(run.archive.stats.qd_score) == pytest.approx(early["qd_score"])


def test_elites_that_left_their_cells_are_not_in_an_earlier_archive(plugins, tmp_path):
    """Without the mark of this in its file, as of an earlier release, figures say so."""
    plugins("losing", LOSING)
    keys = {**TINY, "algorithm": {"type": "losing:Again"}}
    data = data_of(compute_sweep(tmp_path / "results", keys, "::: seed 1 ::: iterations 3 9"))
    early, late = (row for _, row in data.with_results.iterrows())
    run = reported_run(data.runs_dir, early)
    history = read_history(run.files)
    assert np.isnan(history.objective[history.iteration <= 3]).any()
    assert len(objectives_of(run)) == early["num_elites"]
    assert len(run.archive) == early["num_elites"] and not run.is_approximate
    assert float(run.archive.stats.qd_score) == pytest.approx(early["qd_score"])
    filling = Evolution("any", run, history, 9, np.arange(144).reshape(12, 12), None)
    for iteration, row in ((3, early), (9, late)):
        assert np.isfinite(filling.picture(iteration)).sum() == row["num_elites"]
    for figure in (heatmaps, archive_profiles):
        assert "approximate" not in figure(data).caption
    columns = {name: getattr(history, name) for name in ROW.names}
    forget_sums(tmp_path)
    np.savez(run.files.history, **columns)
    for figure in (heatmaps, archive_profiles):
        names_all(figure(data).caption, "1 run", "approximate")
    assert reported_run(data.runs_dir, early).is_approximate


def test_without_a_history_the_figure_says_so(sweep, snapshot):
    for path in runs_of(sweep).glob("*/history.npz"):
        path.unlink()
    drawn = heatmaps(data_of(sweep))
    notes = {text for text in texts(drawn.figure) if " " in text}
    assert "\n".join([drawn.caption, *sorted(notes)]) == snapshot
