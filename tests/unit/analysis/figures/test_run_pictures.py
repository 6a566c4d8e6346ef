"""The picture of each run's archive."""

import json
import shutil

import pytest

from qdsweep.analysis.data import SweepData
from qdsweep.analysis.figures import archives as module
from qdsweep.analysis.figures.archives import run_pictures
from qdsweep.analysis.figures.plots import plot_one
from qdsweep.errors import BadInput
from qdsweep.experiment.load import load


def test_all_runs_that_compare_have_one_colour_scale(invented, main, tmp_path, monkeypatch):
    shutil.copytree(main, tmp_path / "main", ignore=shutil.ignore_patterns("*.svg", "*.pdf"))
    data = SweepData.read(tmp_path / "main", invented.runs)
    (limits,) = json.loads(data.sweep.color_limits.read_text()).values()
    objectives = [load(invented.runs / run).arrays["objective"] for run in data.summary["id"]]
    assert limits[0] <= min(map(min, objectives)) and max(map(max, objectives)) == limits[1]
    drawn = []
    monkeypatch.setattr(module, "_draw", lambda run, ends, picture: drawn.append(ends))
    run_pictures(data)
    assert drawn == []
    span = limits[1] - limits[0]
    near, far = ((limits[0], limits[1] + share * span) for share in (0.03, 0.2))
    monkeypatch.setattr(module, "objective_limits", lambda *_: near)
    run_pictures(data)
    assert drawn == [], "the scale is nearly the same: the pictures stay"
    monkeypatch.setattr(module, "objective_limits", lambda *_: far)
    run_pictures(data)
    assert drawn == [far] * 6


def test_what_there_is_not_is_said_with_what_there_is(invented, main):
    with pytest.raises(BadInput, match=r"there is no such sweep here; known: .*main"):
        plot_one(main.with_name("nosuch"), invented.runs, "overview")
    with pytest.raises(BadInput, match=r"--only nosuch: .*; it has overview, learning_curves, "):
        plot_one(main, invented.runs, "nosuch")
