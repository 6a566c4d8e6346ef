"""`qdsweep scale` on this machine."""

import json
import math
import os
import shutil

import numpy as np
import pandas as pd
import psutil
import pytest
import yaml
from results import forget_sums
from support import TINY, command

from qdsweep import cli
from qdsweep.scaling.study import fit_amdahl

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
    """A study that has ended."""
    folder = tmp_path_factory.mktemp("scale")
    (folder / "config/plugins").mkdir(parents=True)
    (folder / "config/plugins/sleepy.py").write_text(SLEEPY)
    small = {**SMALL, "domain": {"type": "sleepy:Sleepy"}}
    (folder / "small.yaml").write_text(yaml.safe_dump(small))
    words = ["small.yaml", "--workers", "1,2", "--repeats", "2", "--out", "out"]
    again = scale(*words, cwd=folder)
    return folder, words, again


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
    short = min(table["seconds"]) < 1  # by the machine's load it may be more
    if short:
        assert about["recommended_workers"] is None
        assert "cannot be told from 0." in again.stdout
        assert "scaling: not drawn: 0." in again.stderr
    assert (out / "scaling.md").read_text().strip() in again.stdout
    assert (out / "scaling.tex").stat().st_size > 0
    for suffix in ("pdf", "png", "svg"):
        assert (out / f"scaling.{suffix}").exists() != short


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
    path = forget_sums(copy) / "out/runs/w2-r1/summary.json"
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
