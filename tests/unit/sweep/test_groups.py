"""The swept parameters that distinguish groups."""

from qdsweep.sweep.groups import group_columns, group_labels


def test_members_of_a_population_are_groups_by_their_number_not_by_their_history():
    columns = ["member", "sample", "iso_sigma", "seed", "changes"]
    rows = [
        dict(zip(columns, row, strict=True))
        for row in (("3", "3", "0.5", "1", ""), ("7", "3", "0.5", "1", "0 iso_sigma=0.4; 9 ..."))
    ]
    assert group_columns(columns, rows) == ["member", "iso_sigma"]
    assert group_labels(columns, rows, "all") == ["member 3", "member 7"]
