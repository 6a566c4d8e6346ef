"""`rank` of a sweep file: its refusals, and its effect on tables, winners and page."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from given import changed_plan, without_decimals
from in_process import compute_sweep
from looks import data_of
from refusals import names_all, refused
from support import TINY

from qdsweep.analysis.curves import curve_lines, is_defined, page_views, printed_views
from qdsweep.analysis.page.headline import headline
from qdsweep.analysis.search_progress import has_cells, table
from qdsweep.analysis.selection import read_tables
from qdsweep.analysis.sheet import read_sheet
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.analysis.tables.confirmed import winners
from qdsweep.config.sweep import SweepFile
from qdsweep.features.live.follow import Follow
from qdsweep.metrics import BY_NAME, METRICS, RANK, REEVALUATED, RETURNS, STEPS
from qdsweep.planning.checks import check_sweep
from qdsweep.records.paths import SweepDir
from qdsweep.records.plan import read_plan
from qdsweep.records.progress import read_standings
from qdsweep.sweep.runs import table_of_runs

NOVELTY = {
    **TINY,
    "algorithm": {"preset": "novelty_search", "result_archive": False},
    "archive": {"cells": 100},
}


def check(experiment, **keys):
    settings = SweepFile(name="s", experiment=experiment, **keys)
    check_sweep(settings, table_of_runs(experiment, settings.sweep), {(): "my.yaml"})


@pytest.mark.parametrize("rank", ["coverge", "evaluations"])
def test_what_cannot_rank_is_refused_with_what_can(rank):
    with refused("my.yaml", "rank", rank, "coverage", "obj_max", "norm_qd_score"):
        check(TINY, rank=rank)


def test_coverage_ranks_no_archive_without_cells():
    with refused("rank", "coverage", "proximity", "qd_score"):
        check(NOVELTY, rank="coverage")
    check(NOVELTY, rank="norm_qd_score")  # here it ranks by the QD score
    check(TINY, rank="coverage")
    check({**NOVELTY, "algorithm": "novelty_search", "archive": TINY["archive"]}, rank="coverage")


def test_a_plan_has_only_values_that_are_not_the_default():
    """Otherwise the tables of all sweeps of an earlier release would be rebuilt."""
    keys = {"name": "s", "experiment": TINY}
    assert "rank" not in SweepFile(**keys).reporting
    assert "rank" not in SweepFile(**keys, rank=RANK.name).reporting
    assert SweepFile(**keys, rank="coverage").reporting["rank"] == "coverage"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two groups, where cma_mae has more cells and map_elites_line higher scores."""
    results = tmp_path_factory.mktemp("results")
    folder = compute_sweep(
        results, TINY, "::: algorithm cma_mae map_elites_line ::: seed 1 2 3 4 5"
    )
    for row in read_plan(SweepDir(folder)).rows:
        path = results / "runs" / row.run / "metrics.csv"
        coverage, score = (0.9, 10.0) if row.values["algorithm"] == "cma_mae" else (0.5, 20.0)
        shift = 0.01 * int(row.values["seed"])
        metrics = pd.read_csv(path).assign(coverage=coverage - shift, qd_score=score - shift)
        metrics["norm_qd_score"] = metrics["qd_score"] / 144
        path.unlink()  # another name of the file in state/
        metrics.to_csv(path, index=False)
    return results


def ranked(results, rank, columns=()):
    folder = results / "sweeps/tiny"
    with changed_plan(folder) as plan:
        plan.pop("rank", None)
        plan["tables"] = {"columns": list(columns)}
        plan |= {"rank": rank} if rank else {}
    aggregate(folder, results / "runs")
    return folder


@pytest.mark.parametrize(("rank", "best"), [(None, "map_elites_line"), ("coverage", "cma_mae")])
def test_winners_order_page_and_tests_follow_it(results, rank, best, snapshot):
    folder = ranked(results, rank, ["algorithm", "iqm"])
    data = data_of(folder)
    assert data.rank is BY_NAME[rank or RANK.name]
    (groups,) = data.score_scales.values()
    title = data.called.label(best)
    assert title != best and winners(data, 1) == data.best(groups, 1) == [title]
    assert data.median_run(title)["id"].split("-")[2] == "s3"
    comparison = pd.read_csv(folder / "tables/comparisons.csv").iloc[0]
    assert comparison["higher"] == best
    assert comparison["difference"] == pytest.approx(40.0 if rank else 10 / 144)
    table = pd.read_csv(folder / "table.csv")
    medians = {"norm_qd_score_median", "qd_auc_median"}
    assert {*table.filter(like="_median")} == medians | (
        {"coverage_percent_median"} if rank else set()
    )
    for name in ("table", "tables/comparisons"):
        names_all(read_sheet(folder / f"{name}.json").note, data.rank.phrase)
    text = headline(data)
    names_all(text, title, data.rank.phrase, *(["87.00"] if rank else []))
    assert without_decimals(text) == snapshot


@pytest.mark.parametrize(
    ("rank", "views"),
    [
        ("coverage", "coverage norm_qd_score obj_max {} coverage coverage"),
        ("qd_score", "qd_score coverage obj_max {} qd_score qd_score"),
        ("qd_auc", "norm_qd_score coverage obj_max {} norm_qd_score norm_qd_score"),
    ],
)
def test_the_qd_score_has_one_unit_and_the_ranking_metric_comes_first(results, rank, views):
    tables = read_tables(ranked(results, rank))
    shown = [view.metric.name for view in page_views(tables)]
    exploring, greedy = (metric.name for metric in RETURNS)
    first = views.format(f"{greedy} {exploring}").split()
    assert shown == [*first, *[exploring] * 3, *[greedy] * 3]


def test_without_cells_curves_have_the_qd_score(results):
    tables = read_tables(ranked(results, None))
    tables.table["norm_qd_score_n"] = 0
    shown = {view.metric.name for view in page_views(tables)}
    assert "qd_score" in shown and "norm_qd_score" not in shown


def test_curves_of_print_and_page_are_the_same_lines(results):
    tables = read_tables(ranked(results, None))
    groups = list(tables.series)
    assert " ".join(view.metric.name for view in printed_views(tables)) == (
        "norm_qd_score coverage obj_max exploring_return return norm_qd_score"
    )
    for view in page_views(tables):
        lines = curve_lines(tables, groups, view)
        assert is_defined(lines) == (view.over is not STEPS and view.metric not in RETURNS)
        for line in lines if is_defined(lines) else ():
            curve = tables.curves[tables.curves["group"] == line.group]
            expected = curve[f"{view.metric.name}_mean"] * (100 if view.metric.percent else 1)
            np.testing.assert_allclose(line.band.middle, expected)
            assert line.n == 5 and list(line.x) == list(curve[view.over.name])


def test_runs_older_than_a_metric_have_empty_cells(results, monkeypatch):
    """A new metric of algorithms, and runs that finished before it existed."""
    import qdsweep.records.plan as plan

    folder = ranked(results, None)
    new = replace(BY_NAME["coverage"], name="novelty", label="Novelty")
    monkeypatch.setattr(plan, "measures", lambda *, best_ever: (*METRICS, new))
    tables = read_tables(folder)
    assert tables.summary["novelty"].isna().all()
    assert tables.table["novelty_percent_mean"].isna().all()
    assert tables.curves["novelty_mean"].isna().all()


@pytest.mark.parametrize("rank", [None, "coverage", "qd_score", "qd_auc"])
def test_status_and_watch_show_the_metric_that_the_page_draws(results, rank):
    folder = ranked(results, rank)
    plan, drawn = read_plan(SweepDir(folder)), read_tables(folder).drawn
    follow = Follow(results, "tiny")
    assert follow.look(60.0)
    standings = read_standings(SweepDir(results / "sweeps/tiny"), plan)
    assert plan.rank.drawn(has_cells=has_cells(standings)) is drawn
    rows = {row[0]: row for row in table(standings, drawn)}
    for run in follow.runs.values():
        run.look()
        run.curve.refresh()
        last = drawn.factor * pd.read_csv(run.folder.state.metrics)[drawn.name].iloc[-1]
        assert run.metric is drawn
        assert run.score == run.curve.points[-1][1] == pytest.approx(last)
        assert float(rows[run.run.label][3].replace(",", "")) == pytest.approx(last, rel=1e-5)


def test_a_sweep_with_an_archive_without_cells_is_followed_by_the_qd_score(tmp_path):
    results = tmp_path / "results"
    text = "::: result_archive true false :::+ dims [12,12] null :::+ cells null 100"
    folder = compute_sweep(results, {**NOVELTY, "algorithm": "novelty_search"}, text)
    drawn, follow = read_tables(folder).drawn, Follow(results, "tiny")
    follow.look(60.0)
    standings = [run.standing for run in follow.runs.values()]
    assert len({len(now.metrics) for now in standings}) == 2, "only one of them has cells"
    assert drawn is BY_NAME["qd_score"] is RANK.drawn(has_cells=has_cells(standings))
    assert {run.metric for run in follow.runs.values()} == {drawn}


def test_each_metric_is_declared_once():
    assert len(BY_NAME) == len(METRICS) + len(REEVALUATED)
    for metric in BY_NAME.values():
        assert not metric.ranks or metric.label
        assert not metric.always.instead
        assert not metric.instead or BY_NAME[metric.instead].ranks == metric.ranks
