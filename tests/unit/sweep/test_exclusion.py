"""Rows that a sweep excludes."""

from qdsweep.sweep.ids import Identity
from qdsweep.sweep.runs import table_of_runs

SMALL = {"domain": "lp_sphere", "algorithm": "cma_me", "archive": {"dims": [20, 20]}}
SMALL["evaluations"] = 600
TEXT = "::: sigma0 0.1 0.5 ::: batch_size 12 36 ::: seed 1 2"


def test_rows_that_have_all_values_are_left_out():
    kept = table_of_runs(SMALL, TEXT, excluded=["sigma0=0.10, batch_size=36", "seed=2"])
    values = [tuple(row.values.values()) for row in kept.rows]
    assert values == [(0.1, 12, 1), (0.5, 12, 1), (0.5, 36, 1)]
    assert set(kept.runs) < set(table_of_runs(SMALL, TEXT).runs)


def test_values_are_compared_with_their_types():
    """In Python, true equals 1, and .nan does not equal itself."""
    own = {**SMALL, "domain": {"type": "own_part_of_a_test:Own", "arguments": {"a": 0}}}
    text = "::: domain.arguments.a 1 true .nan .inf null"

    def kept(*excluded: str) -> list[str]:
        rows = table_of_runs(own, text, find=lambda _: Identity("run", ""), excluded=excluded).texts
        return [row["domain.arguments.a"] for row in rows]

    assert kept("domain.arguments.a=1.0") == ["true", ".nan", ".inf", "null"]
    assert kept("domain.arguments.a=.nan", "domain.arguments.a=true") == ["1", ".inf", "null"]
