"""Rows that a sweep excludes."""

from qdsweep.sweep.runs import table_of_runs

SMALL = {"domain": "lp_sphere", "algorithm": "cma_me", "archive": {"dims": [20, 20]}}
SMALL["evaluations"] = 600
TEXT = "::: sigma0 0.1 0.5 ::: batch_size 12 36 ::: seed 1 2"


def test_rows_that_have_all_values_are_left_out():
    kept = table_of_runs(SMALL, TEXT, excluded=["sigma0=0.10, batch_size=36", "seed=2"])
    values = [tuple(row.values.values()) for row in kept.rows]
    assert values == [(0.1, 12, 1), (0.5, 12, 1), (0.5, 36, 1)]
    assert set(kept.runs) < set(table_of_runs(SMALL, TEXT).runs)
