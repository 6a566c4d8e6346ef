"""The tables of a sweep: means, tests, marks, several tasks; and that only changes are read."""

import html
import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from rliable import metrics
from scipy import stats
from support import TINY, snakemake

from qdsweep.analysis.figures.appearance import read_dressed
from qdsweep.analysis.page.follow_ups import read_confirmation, read_correction
from qdsweep.analysis.page.headline import headline
from qdsweep.analysis.page.report import commands
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.analysis.tables.comparisons import SHOWN_GROUPS, short_names
from qdsweep.analysis.tables.confirmed import write_confirmed
from qdsweep.analysis.tables.corrected_table import write_corrected
from qdsweep.analysis.tables.over_tasks import SHEETS, write_over_tasks
from qdsweep.analysis.tables.published import write_published
from qdsweep.analysis.tables.sheet import (
    Sheet,
    as_latex,
    as_markdown,
    number_cell,
    read_sheet,
    text_cell,
)
from qdsweep.analysis.tables.timing_tables import write_timing
from qdsweep.records.sweep_dir import SweepDir

SWEEP = "::: domain lp_sphere lp_rastrigin ::: algorithm map_elites cma_me ::: seed 1 2 3"


@pytest.fixture(scope="module")
def tasks(tmp_path_factory) -> Path:
    """Real runs: two domains x two algorithms x three seeds, to their tables."""
    folder = tmp_path_factory.mktemp("tasks")
    config = {"name": "tasks", "experiment": TINY, "sweep": SWEEP}
    (folder / "mine.yaml").write_text(yaml.safe_dump(config))
    table = "results/sweeps/tasks/table.csv"
    snakemake(table, "--cores", 2, "--configfile", folder / "mine.yaml", cwd=folder)
    return folder / "results"


@pytest.fixture
def results(tasks, tmp_path) -> Path:
    """A copy with the same times, so that what is kept of the runs fits them."""
    subprocess.run(["cp", "-a", tasks, tmp_path], check=True)
    return tmp_path / "results"


def again(results: Path, **options) -> Path:
    sweep = results / "sweeps" / "tasks"
    aggregate(sweep, results / "runs", **options)
    return sweep


def read(sweep: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(sweep / f"{name}.csv")


def contents(sweep: Path) -> dict[str, bytes]:
    """Every table; not the log, nor what is kept of the runs."""
    tables = [*sweep.glob("*.*"), *sweep.glob("tables/*")]
    return {str(p.relative_to(sweep)): p.read_bytes() for p in tables if not p.name.startswith(".")}


# Runs that only this file needs: their results are given.


def make_sweep(results: Path, scores: dict[str, list[float]], *, cells: bool = True) -> Path:
    """A sweep of algorithms whose runs end with given normalised QD scores, one a seed."""
    rows = []
    for algorithm, values in scores.items():
        for seed, score in enumerate(values, start=1):
            run = f"{algorithm}-s{seed}"
            write_run(results / "runs" / run, score, cells=cells)
            value = {"algorithm": algorithm, "seed": seed}
            rows.append({"values": value, "id": run, "iterations": 3, "evaluations": None})
    sweep = results / "sweeps" / "given"
    sweep.mkdir(parents=True)
    about = {"name": "given", "experiment": "sphere", "sweep": "::: ...", "rows": rows}
    (sweep / "plan.json").write_text(json.dumps({**about, "columns": ["algorithm", "seed"]}))
    return sweep


def write_run(folder: Path, score: float, *, cells: bool = True) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    steps = np.array([1, 2, 3])
    table = {
        "iteration": steps,
        "evaluations": 10 * steps,
        "num_elites": steps,
        "coverage": steps / 10,
        "qd_score": np.array([0.2, 0.5, 1.0]) * score * 100,
        "norm_qd_score": np.array([0.2, 0.5, 1.0]) * score,
        "obj_max": np.array([0.2, 0.5, 1.0]) * score,
        "obj_mean": score,
        "restarts": 0,
        "seconds_ask": 0.5,
        "seconds_evaluate": 1.0,
        "seconds_tell": 0.25,
        "seconds_reload": [0.0, 0.0, 4.0],
    }
    pd.DataFrame(table).to_csv(folder / "metrics.csv", index=False)
    archive = {
        "type": "grid" if cells else "proximity",
        "cells": 100 if cells else None,
        "dims": [10, 10] if cells else None,
        "ranges": [[0, 1], [0, 1]],
        "objective_range": [0.0, 2.0],
        "qd_score_offset": 0.0,
    }
    about = {"status": "finished", "engine": "serial", "workers": 2, "evaluations": 30}
    (folder / "summary.json").write_text(json.dumps({**about, "archive": archive}))
    (folder / "config.yaml").write_text("domain: {name: sphere}\n")


NORMAL = stats.zscore(np.random.default_rng(3).normal(size=(3, 6)), axis=1) / 100
THREE = {"best": list(1 + NORMAL[0]), "near": list(0.999 + NORMAL[1]), "far": list(0.5 + NORMAL[2])}


# What is in the tables


def test_qd_auc_and_seconds(tmp_path):
    sweep = make_sweep(tmp_path, {"a": [1.0, 3.0]})
    aggregate(sweep, tmp_path / "runs")
    summary, curves = read(sweep, "summary"), read(sweep, "curves")
    # From the empty archive: (0 + 20) / 2, (20 + 50) / 2 and (50 + 100) / 2, mean of the three.
    assert summary["qd_auc"].tolist() == pytest.approx([40.0, 120.0])
    assert summary["wall_seconds"].tolist() == [3 * 1.75 + 4.0] * 2
    assert summary["core_seconds"].tolist() == [2 * 9.25] * 2
    assert summary["qd_score_fraction"].tolist() == [0.5, 1.5]
    assert curves["seconds_mean"].tolist() == [1.75, 3.5, 9.25]


def test_the_table_has_medians_and_interquartile_means(tmp_path):
    sweep = make_sweep(tmp_path, THREE)
    aggregate(sweep, tmp_path / "runs")
    table = read(sweep, "table").set_index("algorithm")
    for name, scores in THREE.items():
        row = table.loc[name]
        assert row["norm_qd_score_median"] == pytest.approx(np.median(scores))
        assert row["norm_qd_score_iqm"] == pytest.approx(stats.trim_mean(scores, 0.25))
        assert row["norm_qd_score_iqm_low"] < row["norm_qd_score_iqm"]
        assert row["qd_auc_iqm"] == pytest.approx(40 * row["norm_qd_score_iqm"])
        assert row["qd_auc_iqm_high"] == pytest.approx(40 * row["norm_qd_score_iqm_high"])
        assert row["qd_auc_median"] == pytest.approx(40 * row["norm_qd_score_median"])


def test_the_best_is_bold_and_ties_have_a_dagger(tmp_path):
    sweep = make_sweep(tmp_path, THREE)
    aggregate(sweep, tmp_path / "runs")
    sheet = read_sheet(sweep / "table.json")
    rows = {row[0].text: row for row in sheet.rows}
    for heading in ("Normalised QD score", "Best objective"):
        column = sheet.columns.index(heading)
        best, near, far = (rows[name][column] for name in ("best", "near", "far"))
        assert best.bold and not best.text.endswith("†")
        assert not near.bold and near.text.endswith("†")
        assert not far.bold and not far.text.endswith("†")
    coverage = sheet.columns.index("Coverage (%)")  # the same for all
    assert all(row[coverage].bold for row in sheet.rows)
    assert not any(row[sheet.columns.index("Core-seconds")].bold for row in sheet.rows)
    assert "†: not told from it at 5 %" in sheet.note
    markdown, latex = (sweep / "table.md").read_text(), (sweep / "table.tex").read_text()
    assert re_line(markdown, "best").count("**") == 6
    assert re_line(latex, "near").count(r"$^\dagger$") == 2
    assert r"\toprule" in latex and r"\textbf{" in re_line(latex, "best")


def re_line(text: str, name: str) -> str:
    (line,) = (line for line in text.splitlines() if line.strip("| ").startswith(name))
    return line


def test_every_pair_is_tested_and_corrected(tmp_path):
    sweep = make_sweep(tmp_path, THREE)
    aggregate(sweep, tmp_path / "runs")
    pairs = read(sweep / "tables", "comparisons")
    assert list(zip(pairs["higher"], pairs["lower"], strict=True)) == [
        ("best", "near"), ("best", "far"), ("near", "far"),
    ]  # fmt: skip
    for row in pairs.to_dict("records"):
        one, other = THREE[row["higher"]], THREE[row["lower"]]
        assert row["welch_p"] == pytest.approx(stats.ttest_ind(one, other, equal_var=False).pvalue)
        assert row["mann_whitney_p"] == pytest.approx(stats.mannwhitneyu(one, other).pvalue)
        assert row["improvement"] == pytest.approx(stats.mannwhitneyu(one, other).statistic / 36)
        assert row["metric"] == "norm_qd_score"
    worst = pairs["welch_p"].max()
    assert pairs["holm_p"].max() == worst  # the last one is corrected for itself alone
    assert (pairs["holm_p"] >= pairs["welch_p"]).all()
    assert pairs["holm_p"].min() == pytest.approx(3 * pairs["welch_p"].min())


def test_of_equal_means_none_is_the_higher(tmp_path):
    scores = {"a": [0.1, 0.2, 0.3], "b": [0.3, 0.2, 0.1], "c": [0.0, 0.1, 0.1]}
    sweep = make_sweep(tmp_path, scores)
    aggregate(sweep, tmp_path / "runs")
    sheet = read_sheet(sweep / "tables" / "comparisons.json")
    pairs = {frozenset(cell.text for cell in row[:2]) for row in sheet.rows}
    assert pairs & {frozenset({"a", "b (equal)"}), frozenset({"b", "a (equal)"})}
    assert {frozenset("ac"), frozenset("bc")} <= pairs


NASTY = [
    "a*b*",
    "_x_",
    "__y",
    "`z`",
    "<html>&amp;",
    "[l](u)",
    "~~s~~",
    "$m$ | n",
    "a\\b",
    "#1",
    "w_w",
]


def test_names_come_out_literally_in_markdown():
    from markdown_it import MarkdownIt

    rows = [[text_cell(name), number_cell("1", 1.0, bold=True)] for name in NASTY]
    sheet = Sheet("t", "T", " ".join(NASTY), ["_Name_", "n"], 1, rows)
    page = MarkdownIt("gfm-like", {"linkify": False}).render(as_markdown(sheet))
    shown = [html.unescape(text) for text in re.findall("<t[dh][^>]*>(.*?)</t[dh]>", page)]
    assert shown[::2] == ["_Name_", *NASTY]
    assert set(shown[3::2]) == {"<strong>1</strong>"}
    assert html.unescape(re.search("<p>(.*)</p>", page)[1]) == " ".join(NASTY)


def test_names_come_out_literally_in_latex():
    sheet = Sheet(
        "t", "T", "", ["x"], 1, [[text_cell(name)] for name in (r"\{}$&#^_~%|<`", "[1]", "*")]
    )
    lines = as_latex(sheet).splitlines()
    signs = r"\textbackslash{}\{\}\$\&\#\textasciicircum{}\_\textasciitilde{}\%$|$$<$"
    signs += r"\textasciigrave{} \\"
    assert lines[-5:-2] == [signs, r"{}[1] \\", r"{}* \\"]  # else they belong to the break


def test_ties_over_tasks_are_all_bold(tmp_path):
    scores = {"a": [np.array([1e-5, 2e-5, 3e-5])] * 2, "b": [np.array([3e-5, 2e-5, 1e-5])] * 2}
    write_over_tasks(tmp_path, scores | {"c": [np.array([0.5e-5, 1e-5, 1e-5])] * 2})
    sheet = read_sheet(tmp_path / "tables" / "over_tasks.json")
    assert [row[-1].bold for row in sheet.rows] == [True, True, False]
    assert sheet.rows[0][3].text == "0.000020"  # as many decimals as it takes


def test_two_seeds_are_not_tested(tmp_path):
    sweep = make_sweep(tmp_path, {"a": [1.0, 1.1], "b": [2.0, 2.1]})
    aggregate(sweep, tmp_path / "runs")
    sheet = read_sheet(sweep / "tables" / "comparisons.json")
    assert sheet.rows == []
    assert "Nothing can be tested" in sheet.note and "3 seeds" in sheet.note
    assert read(sweep / "tables", "comparisons").empty
    table = read_sheet(sweep / "table.json")
    assert "Groups of fewer than 3 seeds are not tested." in table.note
    assert not any("†" in cell.text for row in table.rows for cell in row)
    assert read(sweep, "table")["norm_qd_score_iqm_low"].isna().all()


def test_groups_with_the_same_runs_are_not_tested(tmp_path):
    sweep = make_sweep(tmp_path, {"a": [1.0, 1.1, 1.3]})
    plan = json.loads((sweep / "plan.json").read_text())
    plan["columns"] = ["algorithm", "seed", "iterations"]
    plan["rows"] = [
        row | {"iterations": budget, "values": {**row["values"], "iterations": budget}}
        for budget in (2, 3)
        for row in plan["rows"]
    ]
    (sweep / "plan.json").write_text(json.dumps(plan))
    aggregate(sweep, tmp_path / "runs")
    assert read(sweep, "table")["norm_qd_score_mean"].is_monotonic_increasing
    assert read(sweep / "tables", "comparisons").empty


def test_without_cells_the_qd_score_is_compared(tmp_path):
    sweep = make_sweep(tmp_path, THREE, cells=False)
    aggregate(sweep, tmp_path / "runs")
    assert set(read(sweep / "tables", "comparisons")["metric"]) == {"qd_score"}
    sheet = read_sheet(sweep / "table.json")
    assert sheet.rows[0][sheet.columns.index("QD score")].bold
    assert "IQM [95 %]" not in sheet.columns


def test_of_many_groups_the_best_are_shown_and_all_are_corrected_for(tmp_path):
    rng = np.random.default_rng(4)
    names = [f"g{i:02d}" for i in range(SHOWN_GROUPS + 3)]
    many = {name: list(i + rng.normal(size=3)) for i, name in enumerate(names)}
    sweep = make_sweep(tmp_path, many)
    aggregate(sweep, tmp_path / "runs")
    pairs = read(sweep / "tables", "comparisons")
    assert len(pairs) == SHOWN_GROUPS * (SHOWN_GROUPS - 1) // 2
    means = {name: np.mean(scores) for name, scores in many.items()}
    shown = sorted(names, key=lambda name: -means[name])[:SHOWN_GROUPS]
    assert set(pairs["higher"]) | set(pairs["lower"]) == set(shown)
    every = [
        stats.ttest_ind(many[a], many[b], equal_var=False).pvalue
        for i, a in enumerate(names)
        for b in names[i + 1 :]
    ]
    smallest = pairs.loc[pairs["welch_p"].idxmin()]
    rank = sum(p < smallest["welch_p"] * (1 - 1e-9) for p in every)
    assert smallest["holm_p"] >= min((len(every) - rank) * smallest["welch_p"], 1) * (1 - 1e-9)


def test_short_names_are_as_long_as_they_must_be():
    assert short_names(["a; grid; x", "b; grid; x"]) == ["a", "b"]
    assert short_names(["a; grid; x", "a; cvt; x"]) == ["a; grid", "a; cvt"]


# Several tasks


def test_results_over_tasks_are_rliables(tasks):
    sweep = tasks / "sweeps" / "tasks"
    summary = read(sweep, "summary")
    scores = {
        name: np.column_stack(
            [runs["qd_score_fraction"] for _, runs in of.groupby("domain", sort=False)]
        )
        for name, of in summary.groupby("algorithm")
    }
    over = read(sweep / "tables", "over_tasks").set_index("algorithm")
    assert set(over.index) == {"map_elites", "cma_me"}
    for name, matrix in scores.items():
        assert matrix.shape == (3, 2) and (matrix > 0).all() and (matrix < 1).all()
        assert over.loc[name, "iqm"] == pytest.approx(metrics.aggregate_iqm(matrix))
        assert over.loc[name, "mean"] == pytest.approx(metrics.aggregate_mean(matrix))
        assert over.loc[name, "iqm_low"] < over.loc[name, "iqm"] < over.loc[name, "iqm_high"]
    (pair,) = read(sweep / "tables", "improvement").to_dict("records")
    assert pair["improvement"] == pytest.approx(
        metrics.probability_of_improvement(scores[pair["algorithm"]], scores[pair["other"]])
    )
    profiles = read(sweep / "tables", "profiles")
    for name, of in profiles.groupby("algorithm"):
        expected = [np.mean(scores[name] > tau) for tau in of["tau"]]
        np.testing.assert_allclose(of["fraction"], expected)
        assert (of["low"] <= of["fraction"]).all() and (of["fraction"] <= of["high"]).all()


def test_one_seed_on_each_task_has_no_intervals(results):
    sweep = results / "sweeps" / "tasks"
    plan = json.loads((sweep / "plan.json").read_text())
    plan["rows"] = [row for row in plan["rows"] if row["values"]["seed"] == 1]
    (sweep / "plan.json").write_text(json.dumps(plan))
    again(results)
    assert read(sweep / "tables", "over_tasks")[["iqm_low", "iqm_high"]].isna().all(axis=None)
    assert read(sweep / "tables", "profiles")[["low", "high"]].isna().all(axis=None)
    assert "there is no interval" in read_sheet(sweep / "tables" / "over_tasks.json").note


def test_many_algorithms_over_tasks_are_left_to_the_best(tmp_path):
    rng = np.random.default_rng(6)
    many = {f"a{i:02d}": [i / 20 + rng.random(3) / 50] * 2 for i in range(SHOWN_GROUPS + 2)}
    (tmp_path / "tables").mkdir()
    write_over_tasks(tmp_path, many)
    tables = {name: read(tmp_path / "tables", name) for name in (*SHEETS, "profiles")}
    best = sorted(many)[2:]
    assert set(tables["over_tasks"]["algorithm"]) == set(many)
    assert set(tables["profiles"]["algorithm"]) == set(best)
    pairs = tables["improvement"]
    assert list(zip(pairs["algorithm"], pairs["other"], strict=True)) == (
        list(combinations(reversed(best), 2))
    )


def test_tasks_are_compared_apart(tasks):
    pairs = read(tasks / "sweeps" / "tasks" / "tables", "comparisons")
    assert len(pairs) == pairs["scale"].nunique() == 2
    sheet = read_sheet(tasks / "sweeps" / "tasks" / "tables" / "comparisons.json")
    assert sheet.columns[0] == "Task"
    assert [row[0].text for row in sheet.rows] == ["lp_sphere", "lp_rastrigin"]
    table = read_sheet(tasks / "sweeps" / "tasks" / "table.json")
    score = table.columns.index("Normalised QD score")
    assert [sum(row[score].bold for row in table.rows[at : at + 2]) for at in (0, 2)] == [1, 1]


def test_one_task_less_leaves_nothing_over_tasks_behind(results):
    sweep = results / "sweeps" / "tasks"
    assert (sweep / "tables" / "over_tasks.csv").exists()
    plan = json.loads((sweep / "plan.json").read_text())
    plan["rows"] = [row for row in plan["rows"] if row["values"]["domain"] == "lp_sphere"]
    (sweep / "plan.json").write_text(json.dumps(plan))
    again(results)
    left = {path.stem for path in (sweep / "tables").iterdir()}
    assert "comparisons" in left
    assert not left & {"over_tasks", "improvement", "profiles"}


# What a reader calls the groups

LABELS = {"map_elites": "MAP-Elites", "lp_sphere": "Sphere", "lp_sphere, cma_me": "Ours"}


def write_every_table(results: Path, figures: dict) -> Path:
    """All tables of a sweep with every key: the runs that confirm it are its own."""
    sweep = results / "sweeps" / "tasks"
    plan = json.loads((sweep / "plan.json").read_text())
    where = {"domain": "lp_sphere", "algorithm": "map_elites"}
    value = {"metric": "coverage", "mean": 0.5, "tolerance": 0.1, "source": "a paper"}
    plan |= {"figures": figures, "reevaluate": {"times": 2, "seed": 7}}
    plan |= {"published": [{"where": where, **value}]}
    (sweep / "plan.json").write_text(json.dumps(plan))
    rows = [{**row, "like": row["id"], "group": LABELED[0]} for row in plan["rows"][3:5]]
    rows += [{**row, "like": row["id"], "group": LABELED[1]} for row in plan["rows"][:2]]
    (sweep / "confirm.json").write_text(json.dumps({"rows": rows}))
    for row in plan["rows"]:
        folder = results / "runs" / row["id"]
        summary = json.loads((folder / "summary.json").read_text())
        about = {"id": row["id"], "seed_matters": True, "evaluation_seed": "solution"}
        about |= {"reported": summary, "corrected": summary, "elites": 10}
        (folder / "reevaluated-2-7.json").write_text(json.dumps(about))
    again(results)
    write_timing(sweep, results / "runs")
    write_published(sweep)
    write_corrected(sweep, results / "runs")
    write_confirmed(sweep, results / "runs")
    return sweep


LABELED = ["lp_sphere, cma_me", "lp_sphere, map_elites"]


def test_a_group_has_one_name_and_one_order_in_every_table(results):
    sweep = write_every_table(results, {})
    before = {path: sorted(path.read_text().splitlines()) for path in sweep.rglob("*.csv")}
    order = ["lp_rastrigin, cma_me", "lp_sphere, cma_me"]
    write_every_table(results, {"labels": LABELS, "order": order})
    assert {path: sorted(path.read_text().splitlines()) for path in before} == before
    sheets = [sweep / "table.json", *sweep.glob("tables/*.json")]
    assert len(sheets) == 8
    for path in sheets:
        for suffix in (".json", ".md", ".tex"):
            text = path.with_suffix(suffix).read_text()
            assert "map_elites" not in text and "map\\_elites" not in text, path.with_suffix(suffix)
            assert "lp_sphere" not in text and "lp\\_sphere" not in text, path.with_suffix(suffix)
    expected = ["lp_rastrigin, cma_me", "Ours", "Sphere, MAP-Elites", "lp_rastrigin, MAP-Elites"]
    for name in ("table", "tables/timing", "tables/corrected"):
        sheet = read_sheet(sweep / f"{name}.json")
        assert [row[0].text for row in sheet.rows] == expected, name
    table = read_sheet(sweep / "table.json")
    assert table.columns[:3] == ["group", "domain", "algorithm"]  # "Ours" says not which
    assert [cell.text for cell in table.rows[1][:3]] == ["Ours", "Sphere", "cma_me"]
    higher = [row[:3] for row in read_sheet(sweep / "tables/comparisons.json").rows]
    assert {cell.text for row in higher for cell in row[1:]} == set(expected)
    assert [row[0].text for row in higher] == ["lp_rastrigin", "Sphere"]
    over = read_sheet(sweep / "tables/over_tasks.json")
    assert [row[0].text for row in over.rows] == ["cma_me", "MAP-Elites"]
    (published,) = read_sheet(sweep / "tables/published.json").rows
    assert published[0].text == "Sphere, MAP-Elites"
    confirmed = read_sheet(sweep / "tables/confirmed.json")
    assert [row[0].text for row in confirmed.rows] == ["Ours", "Sphere, MAP-Elites"]
    assert confirmed.columns[-1] == "Rank"


def test_the_page_says_what_held_and_what_else_was_computed(results):
    sweep = write_every_table(results, {"labels": LABELS})
    plan, tables, look = read_dressed(sweep)
    data = pd.read_csv(sweep / "tables/confirmed.csv").set_index("group")
    best = data["unseen_mean"].idxmax()
    said = headline(plan, tables, sweep, look)
    assert (
        f" On the unseen seeds 1\u20132, {look.label(best)} has a mean normalised QD score" in said
    )
    assert f"of {data.loc[best, 'unseen_mean']:.1f}" in said
    same = best == data["sweep_mean"].idxmax()
    assert ("stays the best of the 2 winners" if same else "in place of") in said
    assert "map_elites" not in said and "lp_sphere" not in said
    assert said.startswith("12 runs in 4 groups, ")  # of two domains
    confirmation = read_confirmation(sweep, results / "runs")
    assert "of each task, 2 in all, were run again with the unseen seeds 1\u20132" in (
        confirmation.sentence(2)
    )
    assert len(confirmation.summaries) == 4
    correction = read_correction(sweep, results / "runs", tables.summary["id"])
    assert "2 new evaluations of each (240 evaluations in all" in correction.sentence
    assert "drawn from the seed 7)" in correction.sentence
    assert commands(sweep, tables) == [
        f"qdsweep {stage} tasks"
        for stage in ("aggregate", "corrected", "winners", "confirmed", "report")
    ]


def test_one_winner_has_no_rank(results):
    sweep = write_every_table(results, {})
    confirm = json.loads((sweep / "confirm.json").read_text())
    (sweep / "confirm.json").write_text(json.dumps({"rows": confirm["rows"][:2]}))
    sheet = write_confirmed(sweep, results / "runs")
    assert "Rank" not in sheet.columns and "Rank" not in sheet.note
    assert [len(row) for row in sheet.rows] == [len(sheet.columns)]


# Only what changed is read

_opened: list[Path] | None = None


def _note_opened(event: str, arguments: tuple) -> None:
    if _opened is not None and event == "open" and isinstance(arguments[0], str | Path):
        _opened.append(Path(arguments[0]))


sys.addaudithook(_note_opened)


@contextmanager
def opened():
    """The files that Python opens meanwhile, as the interpreter itself reports them."""
    global _opened
    _opened = []
    try:
        yield _opened
    finally:
        _opened = None


def runs_in(paths: list[Path]) -> set[str]:
    return {path.parent.name for path in paths if path.name == "metrics.csv"}


def test_only_changed_runs_are_read(results):
    with opened() as files:
        again(results)
    assert not runs_in(files) and not [path for path in files if path.name == "config.yaml"]
    runs = sorted((results / "runs").iterdir())
    for run, name in zip(runs, ("metrics.csv", "summary.json", "config.yaml"), strict=False):
        os.utime(run / name, ns=(1, 1))
    with opened() as files:
        again(results)
    assert runs_in(files) == {run.name for run in runs[:3]}


def test_a_changed_run_changes_the_tables(results):
    sweep = results / "sweeps" / "tasks"
    before = contents(sweep)
    (run, *_) = (results / "runs").iterdir()
    table = pd.read_csv(run / "metrics.csv")
    table["qd_score"] *= 2
    table.to_csv(run / "metrics.csv", index=False)
    again(results)
    assert contents(sweep)["summary.csv"] != before["summary.csv"]
    summary = read(sweep, "summary").set_index("id")
    assert summary.loc[run.name, "qd_score"] == table["qd_score"].iloc[-1]


def test_another_budget_is_read_anew(results):
    sweep = results / "sweeps" / "tasks"
    plan = json.loads((sweep / "plan.json").read_text())
    for row in plan["rows"]:
        row["iterations"] = 6
    (sweep / "plan.json").write_text(json.dumps(plan))
    again(results)
    assert (read(sweep, "summary")["iteration"] == 6).all()


def test_tables_from_what_was_kept_are_the_same_bytes(results):
    before = contents(results / "sweeps" / "tasks")
    sweep = again(results)
    assert contents(sweep) == before
    SweepDir(sweep).cache.unlink()
    again(results)
    assert contents(sweep) == before
    assert {"table.csv", "table.tex", "tables/comparisons.json"} <= before.keys()


@pytest.mark.parametrize(
    "damage", ["torn", "empty", "foreign", "pickle", "older", "shorter", "emptied", "fewer"]
)
def test_a_damaged_cache_is_made_anew(results, damage):
    sweep = results / "sweeps" / "tasks"
    before, kept = contents(sweep), SweepDir(sweep).cache
    whole = kept.read_bytes()
    with np.load(kept) as file:
        arrays = dict(file)
    if damage == "torn":
        kept.write_bytes(whole[: len(whole) // 2])
    elif damage == "empty":
        kept.write_bytes(b"")
    elif damage == "foreign":
        np.savez(kept.open("wb"), other=np.arange(3))
    elif damage == "pickle":
        np.savez(kept.open("wb"), **{**arrays, "about": np.array([{}], dtype=object)})
    elif damage == "older":
        about = json.loads(arrays["about"].tobytes())
        about["format"][0] -= 1
        arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
        np.savez(kept.open("wb"), **arrays)
    elif damage in ("emptied", "fewer"):
        about = json.loads(arrays["about"].tobytes())
        results_of_one = next(iter(about["runs"].values()))[1]
        if damage == "emptied":
            results_of_one[0][0] = {}
        else:
            results_of_one.clear()
            arrays |= {name: arrays[name][..., 12:] for name in ("evaluations", "values")}
        arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
        np.savez(kept.open("wb"), **arrays)
    else:
        arrays |= {name: arrays[name][..., :-1] for name in ("evaluations", "values")}
        np.savez(kept.open("wb"), **arrays)
    with opened() as files:
        again(results)
    assert len(runs_in(files)) == 12
    assert contents(sweep) == before
    with opened() as files:
        again(results)
    assert not runs_in(files)
