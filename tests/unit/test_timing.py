"""The time of sweeps, Amdahl's law of measured runs, and `qdsweep scale` with real runs."""

import json
import math
import os
import shutil
import signal
import subprocess
import time

import numpy as np
import pandas as pd
import psutil
import pytest
import yaml
from support import BIN, TINY, command, compute_sweep

from qdsweep import cli
from qdsweep.analysis.figures.figure import save_figures
from qdsweep.analysis.figures.style import style
from qdsweep.analysis.figures.timing import timing_figure
from qdsweep.analysis.selection import read_tables
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.analysis.tables.run_times import group_times, run_times
from qdsweep.analysis.tables.sheet import read_sheet
from qdsweep.analysis.tables.timing_tables import write_timing
from qdsweep.records.plan import read_plan
from qdsweep.records.sweep_dir import SweepDir
from qdsweep.scaling.amdahl import (
    Fit,
    efficiency,
    fit_amdahl,
    recommended_workers,
    speedup,
)
from qdsweep.scaling.scaling_results import advise

# Amdahl's law


@pytest.mark.parametrize("serial", [0.001, 0.01, 0.05, 0.1, 0.25, 0.3, 1.0])
@pytest.mark.parametrize("most", [1, 7, 100])
def test_recommended_is_the_most_workers_above_the_bound(serial, most):
    fit = [n for n in range(1, most + 1) if efficiency(serial, n) >= 0.8 - 1e-12]
    assert recommended_workers(serial, most) == max(fit)


def test_without_a_serial_part_all_solutions_have_a_worker():
    assert recommended_workers(0.0, 540) == 540


def test_the_fit_finds_the_law_again():
    workers = [1, 2, 4, 8]
    fit = fit_amdahl(workers, [20 * (0.1 + 0.9 / n) for n in workers])
    assert fit.serial == pytest.approx(0.1, abs=1e-6)
    assert fit.one_worker == pytest.approx(20, rel=1e-6)
    assert fit.error == pytest.approx(0, abs=1e-6)
    assert speedup(fit.serial, 4) == pytest.approx(1 / (0.1 + 0.9 / 4))


def test_the_standard_error_is_that_of_repeated_studies():
    """Over 300 synthetic studies with 3 % noise the errors are as large as they say."""
    rng = np.random.default_rng(1)
    workers = np.repeat([1, 2, 4, 8], 3)
    scores = []
    for _ in range(300):
        seconds = 20 * (0.1 + 0.9 / workers) * (1 + 0.03 * rng.standard_normal(len(workers)))
        fit = fit_amdahl(list(workers), list(seconds))
        scores.append((fit.serial - 0.1) / fit.error)
    # Student's t with 10 degrees of freedom has the standard deviation 1.12.
    assert 1.0 < np.std(scores) < 1.25
    assert abs(np.mean(scores)) < 0.2


def test_no_error_is_known_of_two_times():
    fit = fit_amdahl([1, 2], [10.0, 6.0])
    assert fit.serial == pytest.approx(0.2, abs=1e-4)
    assert math.isnan(fit.error)


@pytest.mark.parametrize(
    ("fit", "shortest", "workers", "words"),
    [
        (Fit(60, 0.01, 0.0), 5.0, 26, "at least 80% are 26"),
        (Fit(60, 0.01, 0.02), 5.0, 6, "at least 80% are 6, if that fraction is two standard"),
        (Fit(60, 0.9, 0.2), 5.0, 1, "at least 80% are 1,"),
        (Fit(60, 0.0001, 0.0), 5.0, 64, "at least 80% are 64"),
        (Fit(60, 1.0, math.nan), 60.0, 1, "do not make it faster"),
        (Fit(0.4, 0.01, 0.001), 0.1, None, "cannot be told from 0.1 s of iterations"),
        (Fit(60, 0.01, math.nan), 30.0, None, "cannot be told from two runs"),
        (Fit(60, 0.0, math.nan), 30.0, None, "without a serial part, take more workers"),
    ],
)
def test_a_recommendation_needs_times_that_tell_it(fit, shortest, workers, words):
    recommended, advice = advise(fit, shortest, 64)
    assert recommended == workers
    assert words in advice


# A finished sweep


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two algorithms by two seeds; the times of one group are made ones."""
    results = tmp_path_factory.mktemp("results")
    sweep = "::: algorithm cma_mae map_elites_line ::: seed 1 2"
    folder = compute_sweep(results, TINY, sweep)
    for row in read_plan(SweepDir(folder)).rows:
        if row.values["algorithm"] == "cma_mae":
            invent_times(results / "runs" / row.run, int(row.values["seed"]))
    aggregate(folder, results / "runs")
    return results


def invent_times(run, seed):
    """12 iterations of 0.25 + 1 + 0.5 + 0.05 s with 2 workers, and a slower first one."""
    metrics = pd.read_csv(run / "metrics.csv")
    metrics["seconds_ask"], metrics["seconds_evaluate"] = 0.25, 1.0
    metrics["seconds_tell"], metrics["seconds_reload"] = 0.5, 0.05
    metrics.loc[0, ["seconds_ask", "seconds_evaluate"]] = 4.0, 3.0
    (run / "metrics.csv").unlink()  # another name of the file in state/
    metrics.to_csv(run / "metrics.csv", index=False)
    summary = json.loads((run / "summary.json").read_text())
    summary["workers"] = 2
    total = float(metrics.filter(like="seconds_").to_numpy().sum())
    summary["timings"] = {"total": total}
    end = f"2026-01-01T00:01:{[0, 30, 50][seed]}+00:00"  # 90 and 110 s after the start
    summary["attempts"] = [
        {"started": "2026-01-01T00:00:00+00:00", "ended": end, "first_evaluation": 6.0 + seed}
    ]
    (run / "summary.json").unlink()
    (run / "summary.json").write_text(json.dumps(summary))


@pytest.fixture(scope="module")
def runs(results):
    return run_times(read_tables(results / "sweeps/tiny"), results / "runs")


IN_ITERATIONS = 12 * 1.8 + 3.75 + 2.0


def test_times_are_those_of_the_metrics(results, runs):
    for row in runs.to_dict("records"):
        metrics = pd.read_csv(results / "runs" / row["id"] / "metrics.csv")
        for phase in ("ask", "evaluate", "tell", "reload"):
            assert row[phase] == pytest.approx(metrics[f"seconds_{phase}"].sum())
        assert row["wall"] == pytest.approx(metrics.filter(like="seconds_").sum().sum())
        assert row["core_seconds"] == pytest.approx(row["wall"] * row["workers"])
        assert row["start_up"] > 0


def test_what_is_below_the_stamps_is_no_rest(runs):
    made = runs[runs["group"] == "cma_mae"].sort_values("start_up")
    assert list(made["wall"]) == pytest.approx([IN_ITERATIONS] * 2)
    assert list(made["rest"]) == pytest.approx([90 - IN_ITERATIONS, 110 - IN_ITERATIONS])
    real = runs[runs["group"] == "map_elites_line"]
    assert list(real["rest"]) == [0, 0]  # below the stamps' whole seconds


def test_groups_are_means_over_runs(runs):
    table = group_times(runs).set_index("group")
    assert list(table.index) == ["cma_mae", "map_elites_line"]
    assert table.loc["cma_mae", "rest_mean"] == pytest.approx(100 - IN_ITERATIONS)
    assert table.loc["cma_mae", "rest_se"] == pytest.approx(10)
    assert table.loc["cma_mae", "start_up_mean"] == 7.5
    assert list(table["workers"]) == ["2", "1"]


def test_a_run_that_went_further_counts_to_its_row(results):
    sweep = results / "sweeps/shorter"
    shutil.copytree(results / "sweeps/tiny", sweep)
    plan = json.loads((sweep / "plan.json").read_text())
    for row in plan["rows"]:
        row["iterations"] = 6
    (sweep / "plan.json").write_text(json.dumps(plan))
    aggregate(sweep, results / "runs")
    made = run_times(read_tables(sweep), results / "runs").query("group == 'cma_mae'")
    assert list(made["wall"]) == pytest.approx([6 * 1.8 + 5.75] * 2)
    share = (6 * 1.8 + 5.75) / IN_ITERATIONS
    assert made["rest"].sum() == pytest.approx(share * (200 - 2 * IN_ITERATIONS))


def test_the_table_is_for_readers(results):
    sweep = results / "sweeps/tiny"
    old = sweep / "tables/workers.json"  # of an earlier version
    old.write_text("{}")
    write_timing(sweep, results / "runs")
    assert not old.exists()
    timing = read_sheet(sweep / "tables/timing.json")
    texts = [cell.text for cell in timing.rows[0]]
    assert texts[:3] == ["cma_mae", "2", "2"]
    assert texts[timing.columns.index("Rest (s)")] == "72.65"
    assert (sweep / "tables/timing.tex").exists()
    assert len(pd.read_csv(sweep / "tables/timing.csv")) == 2


def test_the_figure_shows_the_table(results, tmp_path):
    with style():
        bars = timing_figure(read_tables(results / "sweeps/tiny"), results / "runs")
        save_figures(tmp_path, [bars])
    assert bars.data["rest_mean"][0] == pytest.approx(100 - IN_ITERATIONS)
    (ax,) = bars.figure.axes
    assert sum(bar.get_width() for bar in ax.patches) == pytest.approx(
        bars.data.filter(like="_mean").to_numpy().sum()
    )
    assert (tmp_path / "timing.pdf").read_bytes().startswith(b"%PDF")


# qdsweep scale

SMALL = {**TINY, "algorithm": "map_elites_line", "batch_size": 20, "iterations": 20}
# Workers share sleep well, also on a machine that has other things to do.
SLEEPY = """
import time

import numpy as np
from qdsweep.domains.base import Evaluation


class Sleepy:
    solution_dim, measures = 3, {"x": (-1.0, 1.0), "y": (-1.0, 1.0)}
    objective_range, fields = (0.0, 100.0), {}

    def evaluate(self, solutions, seeds):
        time.sleep(0.002 * len(solutions))
        return Evaluation(np.abs(solutions[:, 2]), solutions[:, :2].copy())
"""


def scale(*words, cwd, check=0):
    return command("qdsweep", "scale", *words, cwd=cwd, check=check)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--workers", "1,two"], "--workers 1,two: whole numbers"),
        (["--workers", "0,1"], "--workers 0,1: whole numbers"),
        (["--workers", "2"], "at least two different numbers"),
        (["--workers", "2,2"], "at least two different numbers"),
        (["--workers", "1,2", "--repeats", "0"], "--repeats 0"),
        (["--workers", "1,2", "--set", "iterations=1"], "one iteration is too few"),
        (["--workers", "1,41"], "take at most 40 workers"),
        (["--workers", "1,2", "--set", "sigma=1"], "sigma"),
        (["--workers", "1,2", "--cluster", "nowhere"], "config/clusters/nowhere.yaml"),
        (["--workers", "1,2", "--cluster", "serial.yaml"], "engine = serial has one worker"),
    ],
)
def test_bad_input_is_refused_before_any_work(tmp_path, capsys, words, message):
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(SMALL))
    (tmp_path / "serial.yaml").write_text("engine: serial\n")
    assert cli.main(["scale", "small.yaml", "--out", "out", *words]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def scaled(tmp_path_factory):
    """A study that was killed after its second run and started again."""
    folder = tmp_path_factory.mktemp("scale")
    (folder / "config/plugins").mkdir(parents=True)
    (folder / "config/plugins/sleepy.py").write_text(SLEEPY)
    small = {**SMALL, "domain": {"type": "sleepy:Sleepy"}}
    (folder / "small.yaml").write_text(yaml.safe_dump(small))
    words = ["small.yaml", "--workers", "1,2", "--repeats", "2", "--out", "out"]
    killed = subprocess.Popen(
        [str(BIN / "qdsweep"), "scale", *words],
        cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    while "2 of 4" not in killed.stderr.readline():
        assert killed.poll() is None, killed.stderr.read()
    while not (folder / "out/runs/w2-r2/state/metrics.csv").exists():
        time.sleep(0.05)  # the third run: the order has turned
        assert killed.poll() is None
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    again = scale(*words, cwd=folder)
    return folder, words, again


def test_killed_it_goes_on_and_measures_the_interrupted_run_anew(scaled):
    folder, _, again = scaled
    lines = [line for line in again.stderr.splitlines() if " of 4: " in line]
    assert [line.split(": ", 2)[2].split(", repeat")[0] for line in lines] == [
        "1 worker", "2 workers", "2 workers", "1 worker",
    ]  # fmt: skip
    assert ["measured before" in line for line in lines] == [True, True, False, False]
    attempts = json.loads((folder / "out/runs/w2-r2/summary.json").read_text())["attempts"]
    assert len(attempts) == 1 and attempts[0]["from"] == 0


def test_nothing_stays_behind(scaled):
    out = str(scaled[0])
    alive = [p for p in psutil.process_iter(["cmdline", "cwd"]) if p.info["cwd"] == out]
    assert alive == []


def test_it_writes_times_speedup_and_fit(scaled):
    folder, _, again = scaled
    out = folder / "out"
    table = pd.read_csv(out / "scaling.csv")
    about = json.loads((out / "scaling.json").read_text())
    for row in table.to_dict("records"):
        runs = [pd.read_csv(path) for path in out.glob(f"runs/w{row['workers']}-r*/metrics.csv")]
        seconds = [run.filter(like="seconds_").iloc[1:].to_numpy().sum() for run in runs]
        assert row["seconds"] == pytest.approx(np.median(seconds))
        assert row["speedup"] == pytest.approx(table["seconds"][0] / row["seconds"])
        assert row["efficiency"] == pytest.approx(row["speedup"] / row["workers"])
    expected = fit_amdahl(
        [run["workers"] for run in about["runs"]], [run["seconds"] for run in about["runs"]]
    )
    assert about["fit"]["serial_fraction"] == pytest.approx(expected.serial)
    known = None if math.isnan(expected.error) else pytest.approx(expected.error)
    assert about["fit"]["standard_error"] == known
    assert table["speedup"][1] > 1.2
    assert {run["digest"] for run in about["runs"]} == {about["archive_digest"]}
    if min(table["seconds"]) < 1:  # by the machine's load it may be more
        assert about["recommended_workers"] is None
        assert "cannot be told from 0." in again.stdout
    assert (out / "scaling.md").read_text().strip() in again.stdout
    for suffix in ("pdf", "png", "svg", "tex"):
        assert (out / f"scaling.{suffix}").stat().st_size > 0


def test_another_experiment_cluster_or_budget_needs_another_folder(scaled):
    folder, words, _ = scaled
    for more, message in (
        (["--set", "sigma0=1"], "sigma0"),
        (["--set", "iso_sigma=0.4"], "has a run of another experiment"),
        (["--set", "iterations=31"], "iterations=31"),
        (["--cluster", "dask.yaml"], "was measured with engine"),
    ):
        (folder / "dask.yaml").write_text("engine: dask\n")
        assert message in scale(*words, *more, cwd=folder, check=2).stderr


def test_a_result_that_changes_with_the_workers_is_an_error(scaled, tmp_path):
    folder, words, _ = scaled
    copy = shutil.copytree(folder, tmp_path / "copy")
    path = copy / "out/runs/w2-r1/summary.json"
    path.write_text(path.read_text().replace('"archive_digest": "', '"archive_digest": "0'))
    done = scale(*words, cwd=copy, check=1)
    assert "out/runs/w2-r1 and out/runs/w1-r1 have different archives" in done.stderr


def test_a_run_that_fails_names_its_log(tmp_path):
    (tmp_path / "config/plugins").mkdir(parents=True)
    (tmp_path / "config/plugins/broken.py").write_text(
        "class Broken:\n"
        "    solution_dim, measures = 3, {'x': (0.0, 1.0), 'y': (0.0, 1.0)}\n"
        "    objective_range, fields = (0.0, 1.0), {}\n"
        "    def evaluate(self, solutions, seeds):\n"
        "        raise ValueError('no such luck')\n"
    )
    small = {**SMALL, "domain": {"type": "broken:Broken"}}
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(small))
    words = ["small.yaml", "--workers", "1,2", "--repeats", "1", "--out", "out"]
    done = scale(*words, cwd=tmp_path, check=1)
    assert "out/runs/w1-r1: the run failed (exit code 1)" in done.stderr
    assert "no such luck" in done.stderr and "run.log" in done.stderr
    assert not (tmp_path / "out/scaling.csv").exists()


def test_more_workers_than_cores_is_a_warning(tmp_path, capsys, monkeypatch):
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(SMALL))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    from qdsweep.scaling import study as scaling

    monkeypatch.setattr(scaling, "measure", lambda study: (_ for _ in ()).throw(KeyboardInterrupt))
    words = ["scale", "small.yaml", "--workers", "1,3", "--out", "out"]
    assert cli.main(words) == 75
    assert "warning: 3 workers on 1 core" in capsys.readouterr().err


def test_scale_leaves_a_folder_of_something_else_alone(tmp_path):
    precious = tmp_path / "out/runs/w1-r1/data.txt"
    precious.parent.mkdir(parents=True)
    precious.write_text("precious")
    words = ("lp_sphere", "--set", "iterations=9", "--workers", "1,2", "--out", tmp_path / "out")
    assert "not of `qdsweep scale`" in command("qdsweep", "scale", *words, check=2).stderr
    assert precious.read_text() == "precious"
