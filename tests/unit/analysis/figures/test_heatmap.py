"""Maps of archives."""

from types import SimpleNamespace

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from qdsweep.analysis.figures.heatmap import draw_slices


def test_slices_of_three_measures_have_one_colour_scale():
    archive = {"type": "grid", "dims": [3, 2, 2], "ranges": [(0, 1)] * 3}
    grid = np.arange(12.0)
    arrays = {"index": np.arange(12), "objective": grid}
    run = SimpleNamespace(summary={"archive": archive}, arrays=arrays)
    ax, colors = Figure().subplots(), ScalarMappable(Normalize(-5, 20), "magma")
    draw_slices(ax, run, ["x", "y", "z"], colors)
    maps = [part.collections[0] for part in ax.child_axes]
    assert len(maps) == 2
    for place, drawn in enumerate(maps):
        assert drawn.get_clim() == (-5, 20) and drawn.cmap == colors.cmap
        np.testing.assert_array_equal(drawn.get_array(), grid.reshape(3, 2, 2)[:, :, place].T)
