"""The swept parameters that get the colour, the dashes and the panels."""

import pytest
from support import TINY

from qdsweep.config.sweep import Encode, Figures
from qdsweep.sweep.looks import Encoding, encoding, figure_names, slots_of
from qdsweep.sweep.runs import table_of_runs

TWO = "::: step 0.1 0.5 ::: algorithm map_elites cma_me ::: seed 1 2"
THREE = "::: algorithm map_elites cma_me ::: step 0.1 0.5 ::: batch_size 4 8"
SIX = "::: step 0.01 0.02 0.05 0.1 0.2 0.5"


def of(text, **figures):
    table = table_of_runs(TINY, text)
    return encoding(Figures(**figures), table.columns, table.texts)


@pytest.mark.parametrize(
    ("text", "color", "dash", "facets"),
    [
        ("::: seed 1 2", None, None, ()),
        ("::: algorithm map_elites cma_me ::: seed 1 2", "algorithm", "algorithm", ()),
        (TWO, "algorithm", "step", ()),
        (THREE, "algorithm", "step", ("batch_size",)),
        ("::: domain lp_sphere arm ::: algorithm map_elites cma_me",
         "algorithm", "algorithm", ("domain",)),
        ("::: domain lp_sphere arm ::: seed 1 2", "domain", "domain", ()),
        (SIX, "step", None, ()),
        (f"::: algorithm map_elites cma_me {SIX}", "step", "algorithm", ()),
        (f"{SIX} ::: batch_size 4 5 6 7 8", "step", None, ("batch_size",)),
        (f"::: algorithm map_elites cma_me ::: batch_size 4 8 {SIX}",
         "step", "algorithm", ("batch_size",)),
        (f"{SIX} ::: batch_size 4 5 6 7 8 9 10", None, None, ()),
        (f"::: domain lp_sphere arm {SIX} ::: batch_size 4 5 6 7 8 9 10", None, None, ("domain",)),
    ],
)  # fmt: skip
def test_the_algorithm_has_the_colour_the_next_name_dashes_the_rest_panels(
    text, color, dash, facets
):
    assert of(text) == Encoding(color, dash, None, facets)


def test_the_sweep_file_chooses():
    assert of(TWO, encode=Encode(color="step")) == Encoding("step", "algorithm")
    assert of(THREE, encode=Encode(marker="batch_size")) == Encoding(
        "algorithm", "step", "batch_size"
    )
    assert of(THREE, facets="step") == of(THREE, encode=Encode(facets="step"))
    assert of(THREE, facets="step") == Encoding("algorithm", "batch_size", None, ("step",))
    both = Encode(color="algorithm", marker="algorithm")
    assert of(TWO, encode=both) == Encoding("algorithm", "step", "algorithm")


def names_of(text, names):
    table = table_of_runs(TINY, text)
    return figure_names(Figures(names=names), table.columns, table.texts, "tiny")


def test_a_single_dollar_is_not_a_formula():
    assert all("5 $ 0." in name.label for name in names_of(TWO, {"step": "5 $"}).values())


def test_names_appear_in_labels_and_facets():
    names = names_of(THREE, {"step": "$s$", "batch_size": "batch"})
    first = names["map_elites, step 0.1, batch_size 4"]
    assert (first.label, first.series, first.facet) == (
        "map_elites, $s$ 0.1, batch 4", "map_elites, $s$ 0.1", "batch 4"
    )  # fmt: skip


def test_a_value_keeps_its_place_when_others_come_and_go():
    def slots(*values, before=None):
        rows = [{"algorithm": value} for value in values]
        return slots_of(["algorithm"], rows, before or {})

    first = slots("a", "b", "c")
    assert first == {"algorithm": ["a", "b", "c"]}
    assert slots("a", "c", before=first) == first
    assert slots("new", "a", "c", before=first) == {"algorithm": ["a", "b", "c", "new"]}
    assert slots("x", "y", before=first) == {"algorithm": ["x", "y"]}, "another sweep"
    many = slots(*"abcdefg")
    assert slots(*"bcdefgh", before=many) == {"algorithm": [*"bcdefgh"]}, "no more colours"
