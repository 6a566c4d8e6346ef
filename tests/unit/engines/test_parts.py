"""How a batch is cut into parts."""

import pytest

from qdsweep.engines.pool import LEAST_SECONDS, Parts


def sizes(rows: int, workers: int, seconds: float, uneven: bool) -> list[int]:
    """Sizes of the parts of a batch, in order, of rows that take so long."""
    parts = Parts()
    for spread in (0.5, 1.5) * 40 if uneven else (1.0,) * 40:
        parts.learn(slice(0, 1), seconds * spread)
    parts.begin([slice(0, rows)])
    taken = []
    while parts:
        taken.append(parts.take(workers))
    assert [part.start for part in taken] == [0, *(part.stop for part in taken[:-1])]
    assert taken[-1].stop == rows
    return [part.stop - part.start for part in taken]


def test_parts_of_uneven_rows_shrink_to_single_rows_where_rows_take_long():
    found = sizes(150, 4, 2 * LEAST_SECONDS, uneven=True)
    assert found == sorted(found, reverse=True)
    assert found[-8:] == [1] * 8


def test_parts_of_short_uneven_rows_are_worth_their_message():
    found = sizes(150, 4, LEAST_SECONDS / 5, uneven=True)
    assert sum(size >= 4 for size in found) >= len(found) - 8  # times are measured
    assert len(found) < len(sizes(150, 4, 2 * LEAST_SECONDS, uneven=True))


@pytest.mark.parametrize("rows", [1, 4, 5, 8, 20])
def test_every_worker_gets_rows_however_short_they_are(rows):
    found = sizes(rows, 4, LEAST_SECONDS / 1000, uneven=True)
    assert len(found) >= min(rows, 4)
    assert found[0] <= -(-rows // 4)


def test_equal_rows_are_cut_into_equal_shares():
    assert sizes(150, 4, LEAST_SECONDS / 5, uneven=False) == [38, 38, 37, 37]
