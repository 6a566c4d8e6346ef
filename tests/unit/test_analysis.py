"""Tables, figures and the report page of real run directories, made by bare pyribs."""

import json
import math
import os
import re
import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml

from qdsweep.analysis.figures.plots import plot, plot_one
from qdsweep.analysis.page.report import report
from qdsweep.analysis.score_scale import domain_name
from qdsweep.analysis.selection import band_text, read_tables
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.analysis.tables.curves import POINTS, Curve, common_grid
from qdsweep.analysis.tables.sheet import Sheet, as_latex, escape_latex, text_cell
from qdsweep.analysis.tables.statistics import mean_error_count
from qdsweep.analysis.text import TIMES, common_decimals, mean_and_error, short
from qdsweep.config.compose import compose
from qdsweep.config.values import value_text
from qdsweep.errors import BadInput
from qdsweep.experiment.load import load, load_sweep
from qdsweep.records.plan import read_plan
from qdsweep.records.sweep_dir import SweepDir

DIM, BATCH, ITERATIONS = 6, 20, 40
SEEDS = (1, 2, 3)


def sphere(solutions, measure_dim):
    """A tiny linear projection: objective and measures."""
    parts = np.array_split(np.clip(solutions, -5.12, 5.12), measure_dim, axis=1)
    objective = 100 - np.sum((solutions - 2.048) ** 2, axis=1)
    return objective, np.stack([part.sum(axis=1) for part in parts], axis=1)


def make_archive(kind, measure_dim, seed):
    from ribs.archives import (
        CVTArchive,
        GridArchive,
        ProximityArchive,
        SlidingBoundariesArchive,
        k_means_centroids,
    )

    ranges = [(-16.0, 16.0)] * measure_dim
    common = {
        "solution_dim": DIM,
        "seed": seed,
        "qd_score_offset": -600.0,
        "extra_fields": {"objective_std": ((), np.float64), "path": ((2,), np.float64)},
    }
    if kind == "grid":
        return GridArchive(dims=[12] * measure_dim, ranges=ranges, **common), ranges
    if kind == "cvt":
        centroids, _ = k_means_centroids(centroids=60, ranges=ranges, samples=600, seed=0)
        return CVTArchive(centroids=centroids, ranges=ranges, **common), ranges
    if kind == "sliding_boundaries":
        options = {"remap_frequency": 100, "buffer_capacity": 200}
        archive = SlidingBoundariesArchive(dims=[8] * 2, ranges=ranges, **options, **common)
        return archive, ranges
    return ProximityArchive(
        measure_dim=measure_dim, k_neighbors=3, novelty_threshold=0.5, **common
    ), None


def make_run(runs, name, seed, *, kind="grid", measure_dim=2, sigma=0.5):
    """Writes one run's folder and returns its id and its archive."""
    from ribs.emitters import GaussianEmitter
    from ribs.schedulers import Scheduler

    archive, ranges = make_archive(kind, measure_dim, seed)
    emitter = GaussianEmitter(archive, sigma=sigma, x0=np.zeros(DIM), batch_size=BATCH, seed=seed)
    scheduler = Scheduler(archive, [emitter])
    rows = []
    for iteration in range(1, ITERATIONS + 1):
        solutions = scheduler.ask()
        objective, measures = sphere(solutions, measure_dim)
        scheduler.tell(objective, measures, objective_std=objective / 9, path=solutions[:, :2])
        stats = archive.stats
        rows.append(
            {
                "iteration": iteration,
                "evaluations": iteration * BATCH,
                "num_elites": int(stats.num_elites),
                "coverage": float(stats.coverage),
                "qd_score": float(stats.qd_score),
                "norm_qd_score": float(stats.norm_qd_score),
                "obj_max": float(stats.obj_max),
                "obj_mean": float(stats.obj_mean),
                "restarts": 0,
                "seconds_ask": 0.25,
                "seconds_evaluate": 1.0,
                "seconds_tell": 0.5,
                "seconds_reload": 0.0,
            }
        )
    run_id = f"sphere-{name}-s{seed}-0123456789"
    folder = runs / run_id
    folder.mkdir(parents=True)
    pd.DataFrame(rows).to_csv(folder / "metrics.csv", index=False)
    arrays = {field: values for field, values in archive.data().items() if field != "threshold"}
    if kind == "cvt":
        arrays["centroids"] = archive.centroids
    if kind == "sliding_boundaries":
        arrays["boundaries"] = archive._boundaries
    np.savez(folder / "archive.npz", **(arrays | {"index": arrays["index"].astype(np.int64)}))
    structured = ranges is not None
    summary = {
        "id": run_id,
        "status": "finished",
        "iterations": ITERATIONS,
        **{key: rows[-1][key] for key in ("evaluations", "num_elites", "qd_score", "obj_max")},
        "coverage": rows[-1]["coverage"] if structured else None,
        "norm_qd_score": rows[-1]["norm_qd_score"] if structured else None,
        "archive": {
            "type": kind,
            "cells": int(archive.cells) if structured else None,
            "dims": [int(dim) for dim in archive.dims] if hasattr(archive, "dims") else None,
            "ranges": ranges,
            "measures": [f"sum {i + 1}" for i in range(measure_dim)],
            "objective_range": [-600.0, 100.0],
            "qd_score_offset": -600.0,
            "solution_dim": DIM,
        },
        "timings": {},
        "versions": {"ribs": "0.12.0"},
        "engine": "processes",
        "workers": 2,
        "attempts": [],
    }
    (folder / "summary.json").write_text(json.dumps(summary))
    config = compose("lp_sphere", {"seed": seed}).model_dump(mode="json")
    config["domain"]["name"], config["algorithm"]["name"] = "sphere", name
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    return run_id, archive


def write_plan(results, name, columns, rows):
    """Writes plan.json; rows are (values, id, iterations, evaluations)."""
    folder = results / "sweeps" / name
    folder.mkdir(parents=True, exist_ok=True)
    keys = ("values", "id", "iterations", "evaluations")
    listed = [dict(zip(keys, row, strict=True)) for row in rows]
    plan = {"name": name, "experiment": "sphere", "sweep": "::: <b>", "columns": columns}
    (folder / "plan.json").write_text(json.dumps(plan | {"rows": listed}))
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two algorithms by three seeds, and one run of each other kind of archive."""
    results = tmp_path_factory.mktemp("results")
    runs = results / "runs"
    ids, archives = {}, {}
    for name, sigma in (("wide", 1.0), ("narrow", 0.3)):
        for seed in SEEDS:
            ids[name, seed], archives[name, seed] = make_run(runs, name, seed, sigma=sigma)
    kinds = {
        "cvt": ("cvt", 2),
        "sliding": ("sliding_boundaries", 2),
        "proximity": ("proximity", 2),
        "line": ("grid", 1),
        "cube": ("grid", 3),
    }
    for name, (kind, measure_dim) in kinds.items():
        run_id, archive = make_run(runs, name, 1, kind=kind, measure_dim=measure_dim)
        ids[name, 1], archives[name, 1] = run_id, archive
    return SimpleNamespace(results=results, runs=runs, ids=ids, archives=archives)


@pytest.fixture(scope="module")
def main(made):
    """The finished tables, figures and page of the two algorithms by three seeds."""
    rows = [
        ({"algorithm": name, "seed": seed}, made.ids[name, seed], 30, None)
        for name in ("wide", "narrow")
        for seed in SEEDS
    ]
    sweep = write_plan(made.results, "main", ["algorithm", "seed"], rows)
    aggregate(sweep, made.runs)
    plot(sweep, made.runs)
    report(sweep, made.runs)
    return sweep


def read_captions(sweep):
    entries = json.loads((sweep / "plots" / "figures.json").read_text())
    return {entry["name"]: entry["caption"] for entry in entries}


def metrics(made, name, seed):
    return pd.read_csv(made.runs / made.ids[name, seed] / "metrics.csv")


# Tables


def test_runs_tsv_maps_swept_values_to_ids(made, main):
    lines = (main / "runs.tsv").read_text().splitlines()
    assert lines[0].split("\t") == ["algorithm", "seed", "id", "iterations", "evaluations"]
    assert lines[1].split("\t") == ["wide", "1", made.ids["wide", 1], "30", ""]
    assert len(lines) == 7


def test_summary_is_the_metrics_at_the_budget(made, main):
    summary = pd.read_csv(main / "summary.csv")
    assert list(summary["status"].unique()) == ["finished"]
    for _, row in summary.iterrows():
        at = metrics(made, row["algorithm"], row["seed"]).iloc[29]
        for column in ("iteration", "evaluations", "qd_score", "coverage", "obj_max", "obj_mean"):
            assert row[column] == at[column]
        assert row["seconds_evaluate"] == 30.0
        assert row["core_seconds"] == 30 * 1.75 * 2


def test_table_is_mean_and_standard_error_over_seeds(made, main):
    table = pd.read_csv(main / "table.csv").set_index("algorithm")
    for name in ("wide", "narrow"):
        at = pd.DataFrame([metrics(made, name, seed).iloc[29] for seed in SEEDS])
        at["coverage_percent"] = at["coverage"] * 100
        for metric in ("norm_qd_score", "coverage_percent", "obj_max", "qd_score", "evaluations"):
            assert table.loc[name, f"{metric}_mean"] == pytest.approx(at[metric].mean())
            assert table.loc[name, f"{metric}_se"] == pytest.approx(at[metric].sem())
            assert table.loc[name, f"{metric}_n"] == 3
    assert list(table.index) == ["wide", "narrow"]  # The order of the sweep.


def test_markdown_has_a_line_a_group(main):
    text = (main / "table.md").read_text()
    assert text.startswith("| algorithm | n | Normalised QD score | Coverage (%) |")
    assert re.search(r"\| wide \| 3 \| (\*\*)?[\d.]+ ± [\d.]+†?(\*\*)? \|", text)


def test_curves_are_means_on_the_runs_own_evaluations(made, main):
    curves = pd.read_csv(main / "curves.csv")
    wide = curves[curves["algorithm"] == "wide"]
    runs = [metrics(made, "wide", seed).iloc[:30] for seed in SEEDS]
    assert list(wide["evaluations"]) == list(runs[0]["evaluations"])
    assert set(wide["n"]) == {3}
    for metric in ("qd_score", "norm_qd_score", "coverage", "obj_max"):
        values = pd.concat([run[metric].reset_index(drop=True) for run in runs], axis=1)
        np.testing.assert_allclose(wide[f"{metric}_mean"], values.mean(axis=1))
        np.testing.assert_allclose(wide[f"{metric}_se"], values.sem(axis=1))


def test_budgets_cut_one_run_at_two_places(made):
    rows = [
        ({"evaluations": budget, "seed": seed}, made.ids["wide", seed], None, budget)
        for budget in (205, 800)
        for seed in SEEDS
    ]
    sweep = write_plan(made.results, "budgets", ["evaluations", "seed"], rows)
    aggregate(sweep, made.runs)
    summary = pd.read_csv(sweep / "summary.csv")
    assert list(summary["swept_evaluations"]) == [205] * 3 + [800] * 3
    assert list(summary["evaluations"]) == [220] * 3 + [800] * 3  # The first with enough.
    assert summary["qd_score"][0] == metrics(made, "wide", 1)["qd_score"][10]
    assert list(pd.read_csv(sweep / "table.csv")["group"]) == ["evaluations 205", "evaluations 800"]
    curves = pd.read_csv(sweep / "curves.csv")
    assert curves.groupby("group")["evaluations"].max().to_dict() == {
        "evaluations 205": 220,
        "evaluations 800": 800,
    }


def test_constant_budget_is_no_group(made):
    values = [{"iterations": 40, "seed": seed} for seed in SEEDS]
    rows = [(value, made.ids["wide", value["seed"]], 40, None) for value in values]
    sweep = write_plan(made.results, "constant", ["iterations", "seed"], rows)
    plan = read_plan(SweepDir(sweep))
    assert plan.group_columns == []
    assert list(plan.groups) == ["sphere"]


def test_a_run_that_stands_twice_counts_once(made):
    run = made.ids["wide", 1]
    sweep = write_plan(made.results, "twice", ["seed"], [({"seed": 1}, run, 40, None)] * 2)
    aggregate(sweep, made.runs)
    (row,) = pd.read_csv(sweep / "table.csv").to_dict("records")
    assert row["runs"] == row["qd_score_n"] == 1
    assert math.isnan(row["qd_score_se"])  # Unknown, not 0.
    assert len(pd.read_csv(sweep / "summary.csv")) == 2
    assert ",,1," in (sweep / "table.csv").read_text()


def test_missing_and_unfinished_rows_stay_without_results(made):
    rows = [
        ({"seed": 1}, made.ids["wide", 1], 40, None),
        ({"seed": 2}, made.ids["wide", 2], 41, None),
        ({"seed": 3}, "sphere-wide-s3-gone", 40, None),
    ]
    sweep = write_plan(made.results, "holes", ["seed"], rows)
    aggregate(sweep, made.runs)
    summary = pd.read_csv(sweep / "summary.csv")
    assert list(summary["status"]) == ["finished", "unfinished", "missing"]
    assert summary["qd_score"].notna().tolist() == [True, False, False]
    assert ",40,800," in (sweep / "summary.csv").read_text()  # Integers stay integers.
    assert pd.read_csv(sweep / "table.csv")["qd_score_n"][0] == 1


def test_nothing_at_all_is_bad_input(made, tmp_path):
    sweep = write_plan(made.results, "nothing", ["seed"], [({"seed": 1}, "gone", 40, None)])
    with pytest.raises(BadInput, match="nothing to aggregate"):
        aggregate(sweep, made.runs)
    with pytest.raises(BadInput, match=r"plan\.json does not exist"):
        aggregate(tmp_path, made.runs)


def test_long_runs_are_thinned_to_their_ends(made, tmp_path):
    runs = tmp_path / "runs"
    source = made.runs / made.ids["wide", 1]
    folder = runs / "long"
    folder.mkdir(parents=True)
    for name in ("summary.json", "config.yaml"):
        (folder / name).write_text((source / name).read_text())
    row = metrics(made, "wide", 1).iloc[[0]]
    long = pd.concat([row] * 5000, ignore_index=True)
    long["iteration"], long["qd_score"] = range(1, 5001), np.arange(5000.0)
    long["evaluations"] = long["iteration"] * BATCH
    long.to_csv(folder / "metrics.csv", index=False)
    sweep = write_plan(tmp_path, "long", ["seed"], [({"seed": 1}, "long", 5000, None)])
    aggregate(sweep, runs)
    curves = pd.read_csv(sweep / "curves.csv")
    assert len(curves) == POINTS
    assert list(curves["evaluations"].iloc[[0, -1]]) == [BATCH, 5000 * BATCH]
    assert np.array_equal(curves["qd_score_mean"], curves["evaluations"] / BATCH - 1)


def test_runs_with_other_evaluations_meet_where_both_have_values():
    slow = Curve(np.array([10, 20, 30]), {"qd_score": np.array([1.0, 2.0, 3.0])})
    fast = Curve(np.array([15, 25]), {"qd_score": np.array([5.0, 6.0])})
    grid = common_grid([slow, fast])
    assert list(grid) == [20, 25]  # From the later start to the earlier end.
    assert list(slow.at(grid, "qd_score")) == [2.0, 2.0]  # Never a value of later on.
    assert list(fast.at(grid, "qd_score")) == [5.0, 6.0]


def test_unstructured_archives_have_no_coverage(made):
    row = ({"seed": 1}, made.ids["proximity", 1], 40, None)
    sweep = write_plan(made.results, "unstructured", ["seed"], [row])
    aggregate(sweep, made.runs)
    table = pd.read_csv(sweep / "table.csv")
    assert table["coverage_percent_mean"].isna().all()
    assert table["norm_qd_score_mean"].isna().all()
    assert table["qd_score_mean"].notna().all()
    assert "Coverage" not in (sweep / "table.md").read_text()


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], (math.nan, math.nan, 0)), ([5.0], (5.0, math.nan, 1)), ([1.0, math.nan, 3.0], (2, 1, 2))],
)
def test_mean_error_count(values, expected):
    assert mean_error_count(np.array(values)) == pytest.approx(expected, nan_ok=True)


def test_texts():
    assert [value_text(v) for v in (1e-3, True, None, [2, 3], "x")] == [
        "0.001", "true", "null", "[2, 3]", "x",
    ]  # fmt: skip
    assert common_decimals([100.0], [0.123]) == 2
    assert mean_and_error(1234.5, 6.7, 1) == "1,234.5 ± 6.7"
    assert mean_and_error(1234.5, math.nan, 1) == "1,234.5"
    assert [short(v, 3) for v in (7.312e-5, -2e7, 0.25, -3)] == [
        f"7.31 {TIMES} 10⁻⁵",
        f"\u22122 {TIMES} 10⁷",
        "0.25",
        "\u22123",
    ]
    assert escape_latex(f"50 %, {short(7.312e-5, 3)} s and {short(-2e7)}") == (
        r"50 \%, $7.31 \times 10^{-5}$ s and $-2 \times 10^{7}$"
    )
    assert escape_latex(r"$\sigma_0$ of 5 %") == r"$\sigma_0$ of 5 \%"
    assert escape_latex("a_1 for 5 $") == r"a\_1 for 5 \$"
    assert band_text([3, 3]) == "mean ± standard error over 3 seeds"
    assert band_text([1, 1]) == "one seed each, no band"


def test_a_wide_latex_table_is_shrunk_to_the_width_of_the_text():
    sheet = Sheet(
        "wide", "Wide", "A note.", ["one", "two"], 2, [[text_cell("a_b"), text_cell("%")]]
    )
    lines = as_latex(sheet).splitlines()
    assert "graphicx" in lines[0]
    begin = lines.index(r"\begin{tabular}{ll}")
    assert lines[begin - 1] == r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
    assert lines[-1] == r"\end{tabular}}" and r"a\_b & \% \\" in lines


# Loading


@pytest.mark.parametrize("name", ["wide", "cvt", "sliding", "proximity", "line", "cube"])
def test_load_rebuilds_the_archive_cell_by_cell(made, name):
    run = load(made.runs / made.ids[name, 1])
    original = made.archives[name, 1]
    ours, theirs = (
        {field: values[np.argsort(archive.data("index"))] for field, values in data.items()}
        for archive, data in ((run.archive, run.archive.data()), (original, original.data()))
    )
    for field in theirs.keys() - {"threshold"}:  # Index, elites and the domain's own fields.
        np.testing.assert_array_equal(ours[field], theirs[field])
    assert type(run.archive) is type(original)
    assert float(run.archive.stats.qd_score) == pytest.approx(float(original.stats.qd_score))
    if name != "proximity":  # New measures fall into the same cells, too.
        probes = np.random.default_rng(0).uniform(-20, 20, (200, run.archive.measure_dim))
        np.testing.assert_array_equal(run.archive.index_of(probes), original.index_of(probes))
    assert run.config["seed"] == 1
    assert len(run.metrics) == ITERATIONS


def test_load_says_what_is_missing(made, tmp_path):
    with pytest.raises(BadInput, match="nowhere does not exist"):
        load(tmp_path / "nowhere")
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(BadInput, match="not a finished run"):
        load(tmp_path)


def test_load_refuses_an_archive_of_another_run(made, tmp_path):
    for name in ("metrics.csv", "config.yaml", "archive.npz"):
        source = made.runs / made.ids["wide", 1] / name
        (tmp_path / name).write_bytes(source.read_bytes())
    summary = json.loads((made.runs / made.ids["wide", 1] / "summary.json").read_text())
    summary["archive"]["dims"] = [5, 5]
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    with pytest.raises(BadInput, match="do not fit the cells"):
        _ = load(tmp_path).archive


def test_load_sweep(made, main):
    assert len(load_sweep("main", made.results)) == 6
    with pytest.raises(BadInput, match="main"):
        load_sweep("other", made.results)


# Figures


def test_every_run_has_a_picture(made, main):
    pictures = {path.stem for path in (main / "plots" / "archives").iterdir()}
    assert pictures == {made.ids[name, seed] for name in ("wide", "narrow") for seed in SEEDS}


def test_pdf_is_vector_where_it_is_no_heatmap(main):
    assert b"/Subtype /Image" not in (main / "plots" / "learning_curves.pdf").read_bytes()
    assert b"/Subtype /Image" in (main / "plots" / "heatmaps.pdf").read_bytes()


def test_figures_are_the_same_bytes_again_and_fresh_pictures_are_kept(made, main):
    plots = main / "plots"
    before = {path: path.read_bytes() for path in sorted(plots.glob("*.*"))}
    (picture, *_) = sorted((plots / "archives").iterdir())
    drawn = picture.stat().st_mtime_ns
    plot(main, made.runs)
    assert {path: path.read_bytes() for path in sorted(plots.glob("*.*"))} == before
    assert picture.stat().st_mtime_ns == drawn


def test_captions_name_the_band_and_the_median_seed(made, main):
    captions = read_captions(main)
    assert "mean ± standard error over 3 seeds" in captions["overview"]
    tables = read_tables(main)
    final = tables.summary[tables.summary["group"] == "wide"].sort_values("qd_score")
    assert tables.median_run("wide")["id"] == final["id"].iloc[1]


def test_what_does_not_compare_stands_apart(made, monkeypatch):
    monkeypatch.setattr("qdsweep.analysis.figures.learning_curves.MAX_PANELS", 4)
    names = ("wide", "cvt", "sliding", "proximity", "line", "cube")
    rows = [({"algorithm": name}, made.ids[name, 1], 40, None) for name in names]
    sweep = write_plan(made.results, "kinds", ["algorithm"], rows)
    aggregate(sweep, made.runs)
    plot(sweep, made.runs)
    assert len(read_tables(sweep).score_scales) == 6
    captions = read_captions(sweep)
    assert "do not compare" in captions["learning_curves"]
    assert "Not shown: 2 groups" in captions["learning_curves"]
    assert "highest" not in captions["learning_curves"]  # Left out by scale, not by rank.
    assert "one seed each, no band" in captions["learning_curves"]


# The page


def test_report_is_self_contained(main):
    page = (main / "report.html").read_text()
    assert not re.findall(r"https?://", page)
    assert not re.findall(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"(?!data:)", page)
    assert page.count("data:image/") >= 3 + 6
    assert "mean ± standard error over 3 seeds" in page


def test_report_escapes_what_users_write(main):
    page = (main / "report.html").read_text()
    assert "::: &lt;b&gt;" in page and "::: <b>" not in page


def test_each_stage_names_the_one_before_it(made, tmp_path):
    with pytest.raises(BadInput, match="qdsweep aggregate"):
        plot(tmp_path, made.runs)


@pytest.mark.parametrize(
    ("damaged", "stage"),
    [
        ("runs/ID/summary.json", aggregate),
        ("runs/ID/metrics.csv", aggregate),
        ("runs/ID/config.yaml", aggregate),
        ("runs/ID/archive.npz", plot),
        ("sweeps/main/summary.csv", plot),
        ("sweeps/main/plots/figures.json", report),
        ("sweeps/main/table.json", report),
        ("sweeps/main/tables/comparisons.json", report),
    ],
)
def test_a_damaged_file_is_named_with_the_remedy(made, main, tmp_path, damaged, stage):
    results = tmp_path / "results"
    shutil.copytree(made.results, results, copy_function=os.link)
    shutil.rmtree(results / "sweeps/main/plots/archives")  # else they are not drawn again
    (results / "sweeps/main/.aggregated.npz").unlink()
    file = results / damaged.replace("ID", made.ids["wide", 1])
    for content in (b"", b"torn", b"[1]\n", b'{"rows": [1]}\n', b"PK\x03\x04"):
        file.unlink()
        file.write_bytes(content)
        with pytest.raises(BadInput) as failure:
            stage(results / "sweeps/main", results / "runs")
        assert str(file) in str(failure.value), content
        assert "makes it anew" in str(failure.value)


def test_one_figure_is_not_drawn_into_a_damaged_index(made, main, tmp_path):
    shutil.copytree(made.results, tmp_path / "results")
    index = tmp_path / "results/sweeps/main/plots/figures.json"
    index.write_text(index.read_text()[:100])
    with pytest.raises(BadInput, match=r"figures.json is damaged .* `qdsweep plot`"):
        plot_one(tmp_path / "results/sweeps/main", tmp_path / "results/runs", "learning_curves")


def test_importing_the_stages_is_cheap():
    import subprocess
    import sys

    code = (
        "import sys, qdsweep.experiment.load\n"
        "import qdsweep.analysis.tables.aggregate, qdsweep.analysis.figures.plots\n"
        "print(sorted({'ribs', 'pandas', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("domain", "name"),
    [
        ({"name": "lp_sphere", "function": "sphere"}, "lp_sphere"),
        ({"name": "lp_sphere", "function": "rastrigin"}, "lp_sphere (rastrigin)"),
        ({"name": "qd_ant", "env": "Ant-v5"}, "qd_ant"),
        ({"name": "pole", "env": "CartPole-v1"}, "pole"),
        ({"name": "qd_ant", "env": "Hopper-v5"}, "qd_ant (Hopper-v5)"),
        ({"name": "maze"}, "maze"),
    ],
)
def test_another_function_or_environment_is_another_task(tmp_path, domain, name):
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"domain": domain}))
    assert domain_name(tmp_path) == name
