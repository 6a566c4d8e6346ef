"""Lines and bands over seeds."""

import numpy as np
import pytest
from given import make_tables

from qdsweep.analysis.selection import read_tables
from qdsweep.analysis.statistics import spread

VALUES = np.array([[1.0, 4.0], [2.0, 4.0], [6.0, 4.0]])


def test_bands_of_three_runs():
    mean, low, high = spread(VALUES, "error")
    np.testing.assert_allclose(mean, [3, 4])
    np.testing.assert_allclose(high - mean, [np.sqrt(7 / 3), 0])
    _, wide, _ = spread(VALUES, "interval")
    np.testing.assert_allclose((mean - wide)[0] / (mean - low)[0], 4.302653, rtol=1e-6)
    np.testing.assert_allclose(spread(VALUES, "quartiles"), [[2, 4], [1.5, 4], [4, 4]])
    assert np.isnan(spread(VALUES, "seeds").low).all()


@pytest.mark.parametrize("band", ["error", "interval", "quartiles", "seeds"])
def test_one_run_has_no_band(band):
    middle, low, high = spread(VALUES[:1], band)
    np.testing.assert_array_equal(middle, VALUES[0])
    assert np.isnan(low).all() and np.isnan(high).all()


def test_a_caption_has_a_band_only_where_one_is_drawn(tmp_path):
    starts = [
        read_tables(make_tables(tmp_path / str(n), {"a": [1.0, 2.0, 4.0][:n]})).lines_text(["a"])
        for n in (1, 2, 3)
    ]
    assert [text.partition(":")[0] for text in starts] == [" Line", " Line", " Line and band"]
