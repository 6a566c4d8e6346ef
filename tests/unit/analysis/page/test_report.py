"""The page of a sweep is one file, and has what users write literally."""

import re
from dataclasses import replace

import pytest
from looks import data_of

from qdsweep.analysis.figures.plots import plot_one
from qdsweep.analysis.page.gallery import figure_picture, figure_sections
from qdsweep.config.sweep import Figures
from qdsweep.errors import BadInput


def test_report_is_self_contained(main):
    page = (main / "report.html").read_text()
    assert not re.findall(r"https?://", page)
    assert not re.findall(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"(?!data:)", page)
    assert page.count("data:image/") >= 3 + 6
    assert "mean ± standard error over 3 seeds" in page


def test_report_escapes_what_users_write(main):
    page = (main / "report.html").read_text()
    assert "::: &lt;b&gt;" in page and "::: <b>" not in page


def test_no_heading_stands_twice_and_what_is_not_drawn_is_said(main):
    page = (main / "report.html").read_text()
    headings = re.findall(r"<h[123][^>]*>([^<]+)<", page)
    assert len(headings) == len(set(headings))
    assert "Parallel coordinates. Not drawn: only algorithm was swept" in page
    index = (main / "plots" / "more" / "figures.json").read_text()
    assert "only algorithm was swept" in index
    with pytest.raises(BadInput, match="parallel_coordinates: not drawn: only algorithm was"):
        plot_one(main, main.parent.parent / "runs", "parallel_coordinates")


def test_figures_for_a_column_in_print_are_enlarged(main):
    picture = figure_picture(main / "plots/overview")
    data = data_of(main)
    look = Figures(column_width=85)
    (shown,) = figure_sections(replace(data, plan=replace(data.plan, figures=look)))["Overview"]
    assert shown.picture.width == pytest.approx(1.5 * picture.width, abs=1)
    assert shown.picture.url == picture.url
