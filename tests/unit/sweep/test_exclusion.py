"""Rows that a sweep leaves out."""

import pytest

from qdsweep.errors import BadInput
from qdsweep.sweep.runs import table_of_runs

SMALL = {"domain": "lp_sphere", "algorithm": "cma_me", "archive": {"dims": [20, 20]}}
SMALL["evaluations"] = 600
TEXT = "::: sigma0 0.1 0.5 ::: batch_size 12 36 ::: seed 1 2"


def test_rows_that_have_all_values_are_left_out():
    kept = table_of_runs(SMALL, TEXT, excluded=["sigma0=0.10, batch_size=36", "seed=2"])
    assert [tuple(row.values.values()) for row in kept.rows] == [
        (0.1, 12, 1),
        (0.5, 12, 1),
        (0.5, 36, 1),
    ]
    assert set(kept.runs) < set(table_of_runs(SMALL, TEXT).runs)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("sigma=0.1", "did you mean 'sigma0'"),
        ("seed", "write NAME=VALUE"),
        ("seed=3", "entry 1: no row of the sweep has seed=3"),
        ("", "write NAME=VALUE"),
    ],
)
def test_what_is_refused(entry, said):
    with pytest.raises(BadInput, match=said):
        table_of_runs(SMALL, TEXT, excluded=[entry])


def test_something_must_be_left():
    with pytest.raises(BadInput, match="no row of the sweep is left"):
        table_of_runs(SMALL, TEXT, excluded=["seed=1", "seed=2"])
