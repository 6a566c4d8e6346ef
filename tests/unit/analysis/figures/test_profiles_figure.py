"""Performance profiles over tasks."""

import numpy as np
from looks import data_of

from qdsweep.analysis.figures.archive_profile import performance_profiles


def test_performance_profiles_are_drawn_for_several_tasks(made, tasks):
    assert performance_profiles(data_of(made)) == []
    (drawn,) = performance_profiles(data_of(tasks))
    assert list(drawn.data["algorithm"].unique()) == ["map_elites", "cma_me"]
    assert "Agarwal" in drawn.caption
    lines = drawn.figure.subfigs[0].axes[0].lines
    assert [line.get_label() for line in lines] == ["map_elites", "cma_me"]
    np.testing.assert_array_equal(
        lines[0].get_ydata(), drawn.data["fraction"][: len(drawn.data) // 2]
    )
