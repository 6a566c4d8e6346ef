"""Performance profiles over tasks."""

import numpy as np

from qdsweep.analysis.figures.archive_profile import profiles_figure
from qdsweep.analysis.figures.style import read_dressed


def test_performance_profiles_are_drawn_for_several_tasks(made, tasks):
    _, tables, look = read_dressed(made)
    assert profiles_figure(made, tables, look) == []
    _, tables, look = read_dressed(tasks)
    (drawn,) = profiles_figure(tasks, tables, look)
    assert list(drawn.data["algorithm"].unique()) == ["map_elites", "cma_me"]
    assert "Agarwal" in drawn.caption
    lines = drawn.figure.subfigs[0].subfigs[0].axes[0].lines
    assert [line.get_label() for line in lines] == ["map_elites", "cma_me"]
    np.testing.assert_array_equal(
        lines[0].get_ydata(), drawn.data["fraction"][: len(drawn.data) // 2]
    )
