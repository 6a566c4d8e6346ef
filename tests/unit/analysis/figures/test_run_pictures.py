"""The picture of each run's archive."""

import json
import shutil

from qdsweep.analysis.data import SweepData
from qdsweep.analysis.figures.archives import run_pictures
from qdsweep.experiment.load import load


def test_all_runs_that_compare_have_one_colour_scale(invented, main, tmp_path):
    shutil.copytree(main, tmp_path / "main", ignore=shutil.ignore_patterns("*.svg", "*.pdf"))
    data = SweepData.read(tmp_path / "main", invented.runs)
    file = data.sweep.color_limits
    ((scale, (low, high)),) = json.loads(file.read_text()).items()
    objectives = [load(invented.runs / run).arrays["objective"] for run in data.summary["id"]]
    assert low <= min(map(min, objectives)) and max(map(max, objectives)) == high

    def drawn_again(limits) -> int:
        """How many are drawn again, where those that there are have these limits."""
        file.write_text(json.dumps({scale: limits}))
        before = {path: path.stat().st_mtime_ns for path in data.sweep.archives.glob("*.png")}
        run_pictures(data)
        return sum(path.stat().st_mtime_ns != time for path, time in before.items())

    assert drawn_again([low, high]) == 0
    assert drawn_again([low, high + 0.03 * (high - low)]) == 0, "nearly the same scale"
    assert drawn_again([low, high + 0.3 * (high - low)]) == 6
    assert json.loads(file.read_text()) == {scale: [low, high]}
