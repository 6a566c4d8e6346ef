"""metrics.csv has only whole rows, and is cut on resume."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qdsweep.domains.base import Evaluation
from qdsweep.engines.batch import Batch
from qdsweep.experiment.state import Pending
from qdsweep.records.metrics_file import COLUMNS, Metrics, read_rows


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_missing_rows_are_found(done):
    pending = Pending.of(Batch(np.zeros((len(done), 1)), np.zeros(len(done), np.uint32)))
    pending.done[:] = done
    rows = [i for part in pending.missing() for i in range(part.start, part.stop)]
    assert rows == [i for i, value in enumerate(done) if not value]


def test_a_row_counts_only_when_all_of_it_is_there():
    pending = Pending.of(Batch(np.zeros((4, 1)), np.zeros(4, np.uint32)))
    pending.put(slice(1, 3), Evaluation(np.ones(2), np.ones((2, 2)), {"extra": np.ones((2, 3))}))
    assert pending.missing() == [slice(0, 1), slice(3, 4)]
    assert pending.results["extra"].shape == (4, 3)


class TestMetrics:
    def test_rows_after_the_reload_file_are_cut_off(self, tmp_path):
        path = tmp_path / "metrics.csv"
        metrics = Metrics(path, 0)
        for iteration in range(1, 6):
            metrics.add(dict.fromkeys(COLUMNS, 0.5) | {"iteration": iteration})
        metrics.close()
        with path.open("a") as file:
            file.write("6,12")  # truncated by a kill
        assert len(read_rows(path)) == 5
        Metrics(path, 3).close()
        assert [row.split(",")[0] for row in read_rows(path)] == ["1", "2", "3"]

    def test_a_truncated_header_is_not_used(self, tmp_path):
        """Cut within its last name, it would otherwise give another column."""
        path = tmp_path / "metrics.csv"
        path.write_text(",".join(COLUMNS)[:-3])
        assert read_rows(path) == []
        Metrics(path, 0).close()
        assert path.read_text() == ",".join(COLUMNS) + "\n"
