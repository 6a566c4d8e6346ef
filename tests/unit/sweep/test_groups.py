"""The swept parameters that distinguish groups."""

from hypothesis import given, settings
from hypothesis import strategies as st

from qdsweep.sweep.groups import brief_names, group_columns, group_labels

PARTS = st.sampled_from(["algorithm", "archive", "emitters", "0", "1", "sigma", "n"])
NAMES = st.lists(PARTS, min_size=1, max_size=4).map(".".join).filter(lambda n: not n[-1].isdigit())


def test_members_of_a_population_are_groups_by_their_number_not_by_their_history():
    columns = ["member", "sample", "iso_sigma", "seed", "changes"]
    rows = [
        dict(zip(columns, row, strict=True))
        for row in (("3", "3", "0.5", "1", ""), ("7", "3", "0.5", "1", "0 iso_sigma=0.4; 9 ..."))
    ]
    assert group_columns(columns, rows) == ["member", "iso_sigma"]
    assert group_labels(columns, rows, "all") == ["member 3", "member 7"]


@given(st.lists(NAMES, min_size=1, max_size=4, unique=True))
@settings(derandomize=True, database=None)
def test_no_two_swept_parameters_have_one_name_in_labels(columns):
    brief = brief_names(columns)
    assert len(set(brief.values())) == len(columns)
    assert all(f".{name}".endswith(f".{brief[name]}") for name in columns)
    ends = [name.split(".")[-1] for name in columns]
    for name, end in zip(columns, ends, strict=True):
        if ends.count(end) == 1:
            assert brief[name] == end, "an earlier release has these labels"


def test_the_sigmas_of_two_groups_of_emitters_have_names_of_their_own():
    columns = ["algorithm.emitters.0.sigma", "algorithm.emitters.1.sigma"]
    rows = [dict(zip(columns, pair, strict=True)) for pair in (("0.1", "0.2"), ("0.2", "0.1"))]
    assert group_labels(columns, rows, "all") == [
        "emitters.0.sigma 0.1, emitters.1.sigma 0.2",
        "emitters.0.sigma 0.2, emitters.1.sigma 0.1",
    ]
