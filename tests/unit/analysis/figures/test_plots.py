"""Figures in every format with captions, and the same bytes each time."""

from inventing import read_captions, write_plan

from qdsweep.analysis.figures.plots import plot
from qdsweep.analysis.selection import read_tables
from qdsweep.analysis.tables.aggregate import aggregate


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


def test_the_median_run_is_that_of_the_median_score(main):
    tables = read_tables(main)
    final = tables.summary[tables.summary["group"] == "wide"].sort_values("qd_score")
    assert tables.median_run("wide")["id"] == final["id"].iloc[1]


def test_what_does_not_compare_stands_apart(invented, monkeypatch, snapshot):
    """Groups are omitted by scale, not by rank."""
    monkeypatch.setattr("qdsweep.analysis.figures.learning_curves.MAX_PANELS", 4)
    names = ("wide", "cvt", "sliding", "proximity", "line", "cube")
    rows = [({"algorithm": name}, invented.ids[name, 1], 40, None) for name in names]
    sweep = write_plan(invented.results, "kinds", ["algorithm"], rows)
    aggregate(sweep, invented.runs)
    plot(sweep, invented.runs)
    assert len(read_tables(sweep).score_scales) == 6
    assert read_captions(sweep)["learning_curves"] == snapshot
