"""The page of a sweep is one file, and has what users write literally."""

import re
from dataclasses import replace
from html import unescape

import pytest
from looks import data_of

from qdsweep.analysis.page.gallery import figure_picture, figure_sections
from qdsweep.config.sweep import Figures


def text_of(page: str) -> str:
    """What a reader sees, without the rows of tables, the listings and computed numbers."""
    body = re.sub(r'<p class="origin">.*?</p>', "", page[page.index("<body") :])
    body = re.sub(r"<(script|style|tbody|pre)\b.*?</\1>", "", body, flags=re.DOTALL)
    lines = unescape(re.sub(r"<[^>]+>", " ", body)).splitlines()
    text = "\n".join(" ".join(line.split()) for line in lines if line.strip())
    return re.sub(r"\b[0-9a-f]{64}\b|\d+ ± \d+|\d+\.\d+(\.\d+)?", "N", text)


def test_what_the_page_says(main, snapshot):
    page = (main / "report.html").read_text()
    assert text_of(page) == snapshot
    headings = re.findall(r"<h[123][^>]*>([^<]+)<", page)
    assert len(headings) == len(set(headings))


def test_it_is_self_contained_and_escapes_what_users_write(main):
    page = (main / "report.html").read_text()
    assert not re.findall(r"https?://", page)
    assert not re.findall(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"(?!data:)", page)
    assert page.count("data:image/") >= 3 + 6
    assert "::: &lt;b&gt;" in page and "::: <b>" not in page


def test_figures_for_a_column_in_print_are_enlarged(main):
    picture = figure_picture(main / "plots/heatmaps")
    data = data_of(main)
    look = Figures(column_width=85)
    drawn = figure_sections(replace(data, plan=replace(data.plan, figures=look)))["Archives"]
    shown = next(figure for figure in drawn if figure.name == "heatmaps")
    assert shown.picture.width == pytest.approx(1.5 * picture.width, abs=1)
    assert shown.picture.url == picture.url
