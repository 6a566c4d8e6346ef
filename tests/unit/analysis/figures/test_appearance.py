"""Labels, fonts, sizes and colours are the same in every figure."""

import itertools
import re

import pandas as pd
import pytest
from looks import data_of, runs_of, seen, set_look
from refusals import refused
from support import TINY

from qdsweep.analysis.figures.archive_pictures import heatmaps, overview
from qdsweep.analysis.figures.archive_profile import archive_profiles
from qdsweep.analysis.figures.learning_curves import learning_curves
from qdsweep.analysis.figures.plots import plot
from qdsweep.analysis.figures.style import style
from qdsweep.analysis.legend import place_mark
from qdsweep.config.sweep import Figures, SweepFile
from qdsweep.planning.checks import check_sweep
from qdsweep.sweep.looks import figure_names
from qdsweep.sweep.runs import table_of_runs

LOOK = {
    "labels": {"map_elites": "MAP-Elites", "cma_me": "CMA-ME"},
    "order": ["cma_me, iterations 12"],
    "colors": {"cma_me, iterations 12": "#ff0000"},
    "column_width": 85,
}


def names(text, **figures):
    """The names of a sweep's groups in figures."""
    table = table_of_runs(TINY, text)
    rows = [{name: str(value) for name, value in row.values.items()} for row in table.rows]
    return figure_names(Figures(**figures), table.columns, rows, "tiny")


def test_labels_name_groups_series_and_values():
    text = "::: algorithm map_elites cma_me ::: batch_size 8 16 ::: seed 1 2"
    labelled = names(text, labels={"cma_me": "CMA-ME", "map_elites, batch_size 8": "Base"})
    assert [name.label for name in labelled.values()] == [
        "Base", "map_elites, batch_size 16", "CMA-ME, batch_size 8", "CMA-ME, batch_size 16",
    ]  # fmt: skip
    facets = names(
        text, facets="batch_size", order=["cma_me"], colors={"cma_me": "red"}, labels={"8": "few"}
    )
    assert list(facets)[:2] == ["cma_me, batch_size 8", "cma_me, batch_size 16"]
    assert [name.series for name in facets.values()] == ["cma_me"] * 2 + ["map_elites"] * 2
    assert [name.facet for name in facets.values()] == ["batch_size few", "batch_size 16"] * 2
    assert [name.color for name in facets.values()] == ["red"] * 2 + [None] * 2
    alone = names("::: algorithm map_elites cma_me ::: seed 1 2", facets="algorithm")
    assert [name.series for name in alone.values()] == ["map_elites", "cma_me"]


def test_what_an_algorithm_or_a_task_fixes_is_in_no_label():
    text = "::: domain lp_sphere arm :::+ iterations 60 5 ::: algorithm map_elites cma_me"
    text += " :::+ num_emitters 1 15 ::: seed 1 2"
    assert list(names(text)) == [
        "lp_sphere, map_elites", "lp_sphere, cma_me", "arm, map_elites", "arm, cma_me"
    ]  # fmt: skip
    facets = names(text, facets="domain", order=["cma_me"], colors={"cma_me": "red"})
    assert [(name.series, name.color) for name in facets.values()] == [
        ("cma_me", "red"), ("cma_me", "red"), ("map_elites", None), ("map_elites", None)
    ]  # fmt: skip
    linked = names("::: sigma0 0.1 0.2 :::+ batch_size 8 16 ::: seed 1 2")
    assert list(linked) == ["sigma0 0.1, batch_size 8", "sigma0 0.2, batch_size 16"]


@pytest.mark.parametrize(
    ("figures", "named"),
    [
        ({"labels": {"cma_mee": "x"}}, ["cma_mee", "cma_me"]),
        ({"order": ["nobody"]}, ["nobody", "map_elites", "cma_me"]),
        ({"colors": {"nobody": "red"}}, ["nobody", "map_elites", "cma_me"]),
        ({"facets": "seed"}, ["seed", "algorithm", "batch_size"]),
        (
            {"labels": {"cma_me": "A", "map_elites": "A"}},
            ["map_elites, batch_size 8", "cma_me, batch_size 8"],
        ),
        ({"labels": {"cma_me": " "}}, ["cma_me", "' '"]),
        ({"labels": {"cma_me": "_x"}}, ["cma_me", "_x"]),
        ({"labels": {"cma_me": r"$\frac$"}}, ["cma_me", "matplotlib"]),
        ({"labels": {"cma_me": "A\nB"}}, ["cma_me"]),
        ({"colors": {"cma_me": "blurple"}}, ["cma_me", "blurple"]),
        ({"colors": {"cma_me": "none"}}, ["cma_me", "none"]),
        ({"names": {"algorithm": "batch_size"}}, ["algorithm", "batch_size"]),
    ],
)
def test_wrong_names_labels_and_colours_are_refused_before_anything_runs(figures, named):
    table = table_of_runs(TINY, "::: algorithm map_elites cma_me ::: batch_size 8 16 ::: seed 1 2")
    file = SweepFile(name="tiny", experiment="tiny", figures=Figures(**figures))
    with refused("mine.yaml", "figures", *figures, *named):
        check_sweep(file, table, {(): "mine.yaml"})


def test_the_look_is_that_of_every_figure(sweep):
    set_look(sweep, **LOOK)
    plot(sweep, runs_of(sweep))
    plots = sweep / "plots"
    pictures = [*plots.glob("*.pdf"), *plots.glob("more/*.pdf")]
    assert len(pictures) >= 4 + 4
    for path in pictures:
        pdf = path.read_bytes()
        assert b"/FontFile2" in pdf and b"/Type3" not in pdf, path  # TrueType, embedded
        ((width,),) = [re.findall(rb"/MediaBox \[ 0 0 ([\d.]+) [\d.]+ \]", pdf)]
        assert float(width) == pytest.approx(85 / 25.4 * 72, abs=0.1), path
        svg = path.with_suffix(".svg").read_text()
        assert "map_elites" not in svg, path  # a comment names every text
        assert pd.read_csv(path.with_suffix(".csv")).shape[0] > 0
    for name in ("learning_curves", "archive_profiles", "overview"):
        svg = (plots / f"{name}.svg").read_text()
        assert "CMA-ME, iterations 12" in svg and "#ff0000" in svg
    assert list(dict.fromkeys(pd.read_csv(plots / "heatmaps.csv")["group"])) == [
        "CMA-ME, iterations 12",
        "MAP-Elites, iterations 6",
        "MAP-Elites, iterations 12",
        "CMA-ME, iterations 6",
    ]


@pytest.mark.parametrize("width", [None, 85, 180])
@pytest.mark.parametrize("facets", [None, "iterations"])
def test_letters_are_readable_and_nothing_overlaps(sweep, width, facets):
    set_look(sweep, column_width=width, facets=facets)
    data = data_of(sweep)
    with style(width):
        figures = [draw(data) for draw in (overview, learning_curves, heatmaps, archive_profiles)]
        for drawn in figures:
            drawn.figure.draw_without_rendering()
            inside, boxes = drawn.figure.bbox, {}
            for text in seen(drawn.figure):
                box = text.get_window_extent()
                assert 7 <= text.get_fontsize() <= 10, (drawn.name, text)
                assert inside.x0 - 1 <= box.x0 and box.x1 <= inside.x1 + 1, (drawn.name, text)
                assert inside.y0 - 1 <= box.y0 and box.y1 <= inside.y1 + 1, (drawn.name, text)
                boxes[text] = box.padded(-1)
            for first, second in itertools.combinations(boxes, 2):
                both = f"{drawn.name}: {first.get_text()!r}, {second.get_text()!r}"
                assert not boxes[first].overlaps(boxes[second]), both


def test_no_two_lines_of_a_hundred_groups_look_the_same():
    looks = [place_mark(place) for place in range(100)]
    assert len(set(looks)) == 100
    assert not any(look.marker for look in looks[:28]), "marks only if they are needed"
