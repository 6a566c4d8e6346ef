"""Archives are shown at the budget of their row."""

import base64
import itertools
import json
import re
import shutil
import zlib

import numpy as np
import pytest
from given import changed_plan
from in_process import compute_sweep
from looks import SWEEP, data_of, runs_of, texts
from own_parts import LOSING
from refusals import names_all
from results import forget_sums
from support import TINY

from qdsweep.analysis.figures.archive_pictures import heatmaps, run_figure, run_pictures
from qdsweep.analysis.figures.archive_profile import archive_profiles, objectives_of, reported_run
from qdsweep.analysis.page.headline import headline
from qdsweep.analysis.page.methods import methods
from qdsweep.analysis.page.report import thumbnails
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.features.explore.page import embedded
from qdsweep.features.rollouts.animations import Evolution
from qdsweep.records.history import ROW, read_history
from qdsweep.runs.load import load


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


KINDS = "::: algorithm map_elites cma_mae cvt_map_elites sliding_boundaries ::: seed 1 2"


@pytest.fixture(scope="module")
def further(tmp_path_factory):
    """A sweep at 4 iterations, whose runs another sweep took to 9."""
    results = tmp_path_factory.mktemp("results")
    longer = compute_sweep(results, TINY, f"{KINDS} ::: iterations 4 9", name="longer")
    sweep = results / "sweeps/shorter"
    shutil.copytree(longer, sweep)
    with changed_plan(sweep) as plan:
        plan["name"] = "shorter"
        plan["columns"].remove("iterations")
        plan["rows"] = [row for row in plan["rows"] if row["iterations"] == 4]
        for row in plan["rows"]:
            del row["values"]["iterations"]
    aggregate(sweep, results / "runs")
    return data_of(sweep), data_of(longer)


def maps_of(data):
    """The index of the maps in a report, and run -> evaluations and elites at its end."""
    html = embedded(data).html
    parts = dict(re.findall(r'id="explore/([^"]+)">([^<]*)<', html))
    about = json.loads(base64.b64decode(parts["index"]))
    names = {run["id"]: f"run/{run['place']}/{run['digest']}/0" for run in about["runs"]}
    return about, {run: at_end(base64.b64decode(parts[name])) for run, name in names.items()}


def at_end(packed):
    """The evaluations of a packed run, and cell -> objective."""
    content = np.frombuffer(zlib.decompress(packed), np.uint8)
    frames, insertions = content[:8].view("<u4")
    ends = 20 + 4 * np.cumsum([0, frames, frames, insertions, insertions])
    parts = [content[a:b].reshape(4, -1).T.copy() for a, b in itertools.pairwise(ends)]
    evaluations, _, cells, objective = (
        part.view(kind).ravel()
        for part, kind in zip(parts, ("<u4", "<u4", "<u4", "<f4"), strict=True)
    )
    held = zip(np.cumsum(cells, dtype=np.uint32).tolist(), objective.tolist(), strict=True)
    return int(evaluations[-1]), dict(held)


def test_maps_of_the_page_end_at_the_budget_of_the_table(further):
    for data, iterations in zip(further, (4, 9), strict=True):
        about, maps = maps_of(data)
        rows = data.with_results[data.with_results["iteration"] == iterations]
        beyond = set()
        for _, row in rows.iterrows():
            evaluations, held = maps[row["id"]]
            run = reported_run(data.runs_dir, row)
            if evaluations > row["evaluations"]:
                beyond.add(row["id"])
                continue
            assert evaluations == row["evaluations"]
            objective = run.arrays["objective"].astype(np.float32).tolist()
            cells = (
                range(len(objective)) if "sliding" in row["id"] else run.arrays["index"].tolist()
            )
            assert held == dict(zip(cells, objective, strict=True))
        # Cells of sliding boundaries move, so only their end is known.
        assert beyond == {run for run in rows["id"] if "sliding" in run and iterations == 4}
        assert ("larger budget" in " ".join(about["notes"])) == bool(beyond)


def test_pictures_of_runs_are_of_the_largest_budget_in_the_sweep(further):
    for data, iterations in zip(further, (4, 9), strict=True):
        run_pictures(data)
        labels = {run: label for run, label, _ in thumbnails(data)}
        assert len(labels) == data.summary["id"].nunique()
        rows = data.with_results[data.with_results["iteration"] == iterations]
        for _, row in rows[~rows["id"].str.contains("sliding")].iterrows():
            assert labels[row["id"]].endswith("iterations 9") == (iterations == 9)
            figure = run_figure(reported_run(data.runs_dir, row), (0.0, 1.0))
            title = figure.axes[0].get_title()
            names_all(title, f"{row['evaluations']:,} eval", f"{100 * row['coverage']:.1f} %")


def test_texts_count_each_run_once_at_its_largest_budget(further):
    shorter, longer = further
    for data, iterations in ((shorter, 4), (longer, 9)):
        rows = data.with_results[data.with_results["iteration"] == iterations]
        names_all(headline(data), f"{rows['evaluations'].sum():,} evaluations")
    assert "SHA-256" in methods(longer, set()).text
    assert "SHA-256" not in methods(shorter, set()).text, "its digests are of larger budgets"
