"""Figures in every format, their captions, the same bytes again."""

import shutil

import pytest
from inventing import read_captions, write_plan

from qdsweep.analysis.figures.plots import plot, plot_one
from qdsweep.analysis.selection import read_tables
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.errors import BadInput


def test_pdf_is_vector_where_it_is_no_heatmap(main):
    assert b"/Subtype /Image" not in (main / "plots" / "learning_curves.pdf").read_bytes()
    assert b"/Subtype /Image" in (main / "plots" / "heatmaps.pdf").read_bytes()


def test_figures_are_the_same_bytes_again_and_fresh_pictures_are_kept(invented, main):
    plots = main / "plots"
    before = {path: path.read_bytes() for path in sorted(plots.glob("*.*"))}
    (picture, *_) = sorted((plots / "archives").iterdir())
    drawn = picture.stat().st_mtime_ns
    plot(main, invented.runs)
    assert {path: path.read_bytes() for path in sorted(plots.glob("*.*"))} == before
    assert picture.stat().st_mtime_ns == drawn


def test_captions_name_the_band_and_the_median_seed(invented, main):
    captions = read_captions(main)
    assert "mean ± standard error over 3 seeds" in captions["overview"]
    tables = read_tables(main)
    final = tables.summary[tables.summary["group"] == "wide"].sort_values("qd_score")
    assert tables.median_run("wide")["id"] == final["id"].iloc[1]


def test_what_does_not_compare_stands_apart(invented, monkeypatch):
    monkeypatch.setattr("qdsweep.analysis.figures.curves.MAX_PANELS", 4)
    names = ("wide", "cvt", "sliding", "proximity", "line", "cube")
    rows = [({"algorithm": name}, invented.ids[name, 1], 40, None) for name in names]
    sweep = write_plan(invented.results, "kinds", ["algorithm"], rows)
    aggregate(sweep, invented.runs)
    plot(sweep, invented.runs)
    assert len(read_tables(sweep).score_scales) == 6
    captions = read_captions(sweep)
    assert "do not compare" in captions["learning_curves"]
    assert "Not shown: 2 groups" in captions["learning_curves"]
    assert "highest" not in captions["learning_curves"]  # Left out by scale, not by rank.
    assert "one seed each, no band" in captions["learning_curves"]


def test_one_figure_is_not_drawn_into_a_damaged_index(invented, main, tmp_path):
    shutil.copytree(invented.results, tmp_path / "results")
    index = tmp_path / "results/sweeps/main/plots/figures.json"
    index.write_text(index.read_text()[:100])
    with pytest.raises(BadInput, match=r"figures.json is damaged .* `qdsweep plot`"):
        plot_one(tmp_path / "results/sweeps/main", tmp_path / "results/runs", "learning_curves")
