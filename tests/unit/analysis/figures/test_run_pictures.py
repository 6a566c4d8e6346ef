"""The picture of each run's archive."""

import json
import shutil
from dataclasses import replace

import numpy as np

from qdsweep.analysis.data import SweepData
from qdsweep.analysis.figures.archive_pictures import run_pictures
from qdsweep.config.sweep import Figures
from qdsweep.runs.load import load


def test_all_runs_that_compare_have_one_colour_scale(invented, main, tmp_path):
    shutil.copytree(main, tmp_path / "main", ignore=shutil.ignore_patterns("*.svg", "*.pdf"))
    data = SweepData.read(tmp_path / "main", invented.runs)
    file = data.sweep.color_limits
    ((scale, (low, high)),) = json.loads(file.read_text()).items()
    runs = [load(invented.runs / run).arrays["objective"] for run in data.summary["id"]]
    objectives = np.concatenate(runs)
    assert objectives.min() <= low < high == objectives.max()
    assert np.mean(objectives >= low) >= 0.95

    def scale_after(limits) -> list[float]:
        """Returns the scale of all pictures if the existing ones have these limits."""
        file.write_text(json.dumps({scale: limits}))
        run_pictures(data)
        return json.loads(file.read_text())[scale]

    pictures = {path: path.stat().st_mtime_ns for path in data.sweep.archives.glob("*.png")}
    assert scale_after([low, high]) == [low, high]
    assert len(pictures) == 6
    assert all(path.stat().st_mtime_ns == time for path, time in pictures.items())
    near, far = ([low, high + share * (high - low)] for share in (0.03, 0.3))
    assert scale_after(near) == near, "nearly the same, so pictures stay"
    assert scale_after(far) == [low, high]
    look = Figures(color_range=tuple(near))
    data = replace(data, plan=replace(data.plan, figures=look))
    assert scale_after([low, high]) == near, "`color_range` is exact"
    assert all(path.stat().st_mtime_ns != time for path, time in pictures.items())
