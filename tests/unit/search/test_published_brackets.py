"""Hyperband's rungs by algorithm 1 of Li et al. (2018), for the R of the paper's examples.

Its table 1 has fewer settings in some brackets (27 instead of 34). There, n is rounded down to a
multiple of a power of eta, where the algorithm has the ceiling.
"""

import pytest

from qdsweep.config.search import Search
from qdsweep.search.levels import levels, samples_of

BRACKETS = {
    81: [
        [(81, 1), (27, 3), (9, 9), (3, 27), (1, 81)],
        [(34, 3), (11, 9), (3, 27), (1, 81)],
        [(15, 9), (5, 27), (1, 81)],
        [(8, 27), (2, 81)],
        [(5, 81)],
    ],
    243: [
        [(243, 1), (81, 3), (27, 9), (9, 27), (3, 81), (1, 243)],
        [(98, 3), (32, 9), (10, 27), (3, 81), (1, 243)],
        [(41, 9), (13, 27), (4, 81), (1, 243)],
        [(18, 27), (6, 81), (2, 243)],
        [(9, 81), (3, 243)],
        [(6, 243)],
    ],
}


@pytest.mark.parametrize("most", BRACKETS)
def test_rungs_are_those_of_the_paper(most):
    search = Search(halving={"first": f"1/{most}", "eta": 3, "brackets": "all"})
    brackets: dict[str, list[tuple[int, int]]] = {}
    for level in levels(search, 0, ("",), most):
        brackets.setdefault(level.name.partition("-rung")[0], []).append(
            (level.places, level.budget)
        )
    assert list(brackets.values()) == BRACKETS[most]
    assert samples_of(search) == sum(rungs[0][0] for rungs in BRACKETS[most])
