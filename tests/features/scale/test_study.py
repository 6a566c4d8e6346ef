"""`qdsweep scale` on this machine."""

import json
import math
import os
import shutil

import numpy as np
import pandas as pd
import psutil
import pytest
from counting import EXPERIMENT, add_plugin
from in_process import qdsweep
from refusals import names_all
from results import forget_sums
from support import TINY, write_yaml

from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.features.scale.study import SHORTEST, Study, advise, check_study, fit_amdahl

SMALL = {**TINY, "algorithm": "map_elites_line", "batch_size": 20, "iterations": 20}


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--workers", "2"], ["--workers", "1,2"]),
        (["--workers", "2,2"], ["--workers", "2,2"]),
        (["--workers", "1,2", "--repeats", "0"], ["--repeats", "0"]),
        (["--workers", "1,2", "--set", "iterations=1"], ["iterations=20"]),
        (["--workers", "1,41"], ["41", "40"]),
        (["--workers", "1,2", "--set", "sigma=1"], ["sigma"]),
        (["--workers", "1,2", "--cluster", "nowhere"], ["config/clusters/nowhere.yaml"]),
        (["--workers", "1,2", "--cluster", "serial.yaml"], ["engine", "serial"]),
    ],
)
def test_bad_input_is_refused_before_any_work(tmp_path, words, names):
    write_yaml(tmp_path / "small.yaml", SMALL)
    write_yaml(tmp_path / "serial.yaml", {"engine": "serial"})
    printed = qdsweep("scale", "small.yaml", "--out", "out", *words, cwd=tmp_path, code=2)
    names_all(printed, *names)
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def scaled(tmp_path_factory):
    """A finished study."""
    folder = tmp_path_factory.mktemp("scale")
    add_plugin(folder)
    write_yaml(folder / "small.yaml", EXPERIMENT)
    words = ["scale", "small.yaml", "--workers", "1,2", "--out", "out", "--repeats", 2]
    return folder, words, qdsweep(*words, cwd=folder)


def test_nothing_stays_behind(scaled):
    out = str(scaled[0])
    processes = psutil.process_iter(["cwd"])
    assert [process for process in processes if process.info["cwd"] == out] == []


def test_it_writes_times_speedup_and_fit(scaled):
    folder, _, printed = scaled
    out = folder / "out"
    table = pd.read_csv(out / "scaling.csv")
    about = json.loads((out / "scaling.json").read_text())
    for row in table.to_dict("records"):
        runs = [pd.read_csv(path) for path in out.glob(f"runs/w{row['workers']}-r*/metrics.csv")]
        seconds = [run.filter(like="seconds_").iloc[1:].to_numpy().sum() for run in runs]
        assert row["seconds"] == pytest.approx(np.median(seconds))
        # The first iteration does not count.
        timed = EXPERIMENT["evaluations"] - EXPERIMENT["initial_solutions"]
        assert row["throughput"] == pytest.approx(timed / np.median(seconds))
        assert row["speedup"] == pytest.approx(table["seconds"][0] / row["seconds"])
        assert row["efficiency"] == pytest.approx(row["speedup"] / row["workers"])
    expected = fit_amdahl(
        [run["workers"] for run in about["runs"]], [run["seconds"] for run in about["runs"]]
    )
    assert about["fit"]["serial_fraction"] == pytest.approx(expected.serial)
    known = None if math.isnan(expected.error) else pytest.approx(expected.error)
    assert about["fit"]["standard_error"] == known
    assert {run["digest"] for run in about["runs"]} == {about["archive_digest"]}
    names_all(printed, (out / "scaling.md").read_text().strip())
    assert (out / "scaling.tex").stat().st_size > 0
    shortest = min(table["seconds"])
    assert about["recommended_workers"] == advise(expected, shortest, EXPERIMENT["batch_size"])[0]
    for suffix in ("pdf", "png", "svg"):  # on a busy machine the time may be long enough
        assert (out / f"scaling.{suffix}").exists() == (shortest >= SHORTEST)


@pytest.mark.parametrize(
    ("more", "name"),
    [
        (["--set", "sigma0=1"], "sigma0"),
        (["--set", "iso_sigma=0.4"], "out/runs/w1-r1"),
        (["--set", "evaluations=310"], "310"),
        (["--cluster", "dask.yaml"], "dask"),
    ],
)
def test_another_experiment_cluster_or_budget_needs_another_folder(scaled, more, name):
    folder, words, *_ = scaled
    write_yaml(folder / "dask.yaml", {"engine": "dask"})
    names_all(qdsweep(*words, *more, cwd=folder, code=2), name)


def test_a_result_that_changes_with_the_workers_is_an_error(scaled, tmp_path):
    folder, words, *_ = scaled
    copy = shutil.copytree(folder, tmp_path / "copy")
    path = forget_sums(copy) / "out/runs/w2-r1/summary.json"
    path.write_text(path.read_text().replace('"archive_digest": "', '"archive_digest": "0'))
    names_all(
        qdsweep(*words, cwd=copy, code=1), "out/runs/w2-r1", "out/runs/w1-r1", "archive_digest"
    )


def test_a_run_that_fails_names_its_log(tmp_path):
    add_plugin(tmp_path)
    domain = {**EXPERIMENT["domain"], "arguments": {"slope": 13}}
    write_yaml(tmp_path / "small.yaml", {**EXPERIMENT, "domain": domain})
    words = ["small.yaml", "--workers", "1,2", "--repeats", "1", "--out", "out"]
    printed = qdsweep("scale", *words, cwd=tmp_path, code=1)
    names_all(printed, "out/runs/w1-r1", "FloatingPointError", "run.log")
    assert not (tmp_path / "out/scaling.csv").exists()


def test_more_workers_than_cores_is_a_warning(tmp_path, capsys):
    clusters = {3: Cluster(workers_per_node=3)}
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        check_study(Study(compose(SMALL), ["small.yaml"], clusters, 1, tmp_path / "out"), "local")
    finally:
        os.sched_setaffinity(0, cores)
    names_all(capsys.readouterr().err, "warning", 3, 1)


def test_a_folder_of_something_else_does_not_change(tmp_path):
    precious = tmp_path / "out/runs/w1-r1/data.txt"
    precious.parent.mkdir(parents=True)
    precious.write_text("precious")
    words = ("lp_sphere", "--set", "iterations=9", "--workers", "1,2", "--out", "out")
    names_all(qdsweep("scale", *words, cwd=tmp_path, code=2), "--out out", "out/runs/w1-r1")
    assert precious.read_text() == "precious"
