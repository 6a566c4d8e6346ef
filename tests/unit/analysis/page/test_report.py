"""The page of a sweep is one file, and contains users' texts literally."""

import json
import re
import shutil
from dataclasses import replace
from html import unescape

import pytest
import yaml
from in_process import compute_run, compute_sweep, report_sweep
from looks import data_of, runs_of
from refusals import names_all
from support import TINY

from qdsweep.analysis.page.gallery import figure_picture, figure_sections
from qdsweep.analysis.page.report import group_settings, report, trimmed
from qdsweep.analysis.sheet import Sheet, text_cell
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.config.sweep import Figures
from qdsweep.runs.load import Run
from qdsweep.versions import __version__, own_commit


def text_of(page: str) -> str:
    """The visible text, without the rows of tables, the listings and computed numbers."""
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


# No solution is good enough for these archives.
UNREACHABLE = {"learning_rate": 0.1, "threshold_min": 1e9}


@pytest.mark.parametrize(
    ("kind", "rank", "keys"),
    [
        ("grid", "norm_qd_score", {}),
        ("cvt", "obj_max", {}),
        ("grid", "qd_auc", {"archive": {"dims": [6]}, "num_measures": 1}),
        ("grid", "coverage", {"archive": {"dims": [3, 2, 2]}, "num_measures": 3}),
    ],
)
def test_a_sweep_of_empty_archives_has_a_report_that_says_so(tmp_path, kind, rank, keys):
    domain = {"preset": "lp_sphere", "solution_dim": 6}
    domain |= {"num_measures": keys.pop("num_measures", 2)}
    archive = {"type": kind, **UNREACHABLE}
    experiment = {**TINY, "domain": domain, **keys, "iterations": 2}
    experiment["algorithm"] = {"preset": "map_elites", "archive": archive}
    text = "::: mutation_scale 0.1 0.2 ::: batch_size 4 8 ::: seed 1 2"
    sweep = report_sweep(compute_sweep(tmp_path, experiment, text, rank=rank))
    page = text_of((sweep / "report.html").read_text())
    assert "All archives are empty." in page and "highest mean" not in page


def test_a_group_of_empty_archives_is_next_to_one_with_elites(tmp_path):
    archive = {"type": "grid", "learning_rate": 0.1}
    experiment = {**TINY, "algorithm": {"preset": "map_elites", "archive": archive}}
    text = "::: threshold_min -1e9 1e9 ::: seed 1 2"
    sweep = report_sweep(compute_sweep(tmp_path, experiment, text, rank="obj_max"))
    page = text_of((sweep / "report.html").read_text())
    assert "archives are empty" not in page and "Best objective ever" in page


def test_elites_below_the_objective_range_are_a_warning_at_the_table(invented, main, tmp_path):
    results = tmp_path / "results"
    shutil.copytree(invented.results, results)
    file = results / "runs" / invented.ids["wide", 1] / "summary.json"
    count = {"objectives_outside": {"below": 77, "above": 0}}
    file.write_text(json.dumps(json.loads(file.read_text()) | count))
    sweep = results / "sweeps" / main.name
    aggregate(sweep, results / "runs")
    report(sweep, results / "runs")
    page = (sweep / "report.html").read_text()
    (warning,) = re.findall(r'<p class="warning">(.*?)</p>', page)
    names_all(warning, "77", "1 of 6", "objective_range")
    assert page.count(warning) == 1, "not in the note of the table, too"
    assert 'class="warning"' not in (main / "report.html").read_text()


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


def test_the_navigation_has_only_sections_with_content(main):
    page = (main / "report.html").read_text()
    entries = re.findall(r'href="#([\w-]+)"', page[page.index("<nav") : page.index("</nav>")])
    assert entries == ["results", "curves", "archives", "time", "runs", "methods"]
    sections = page.split("<section ")[1:]
    assert [re.match(r'id="([\w-]+)"', section)[1] for section in sections] == entries
    assert all(re.search(r"<(table|figure|p)\b", section) for section in sections)


def test_a_figure_that_is_interactive_is_there_once(main):
    page = (main / "report.html").read_text()
    pictures = re.findall(r'<figure class="figure" id="([\w.]+)"', page)
    assert "heatmaps" in pictures and len(pictures) == len(set(pictures))
    assert not {"overview", "learning_curves"} & set(pictures)
    links = re.findall(r'<a download="([\w.]+)"', page)
    assert {"overview.pdf", "overview.svg", "learning_curves.pdf"} <= set(links)


def test_each_figure_links_its_pdf_its_svg_and_its_data(main):
    page = (main / "report.html").read_text()
    pictures = re.findall(r'<figure class="figure" id="([\w.]+)"', page)
    links = set(re.findall(r'<a download="([\w.]+)"', page))
    assert {f"{name}.{end}" for name in pictures for end in ("pdf", "svg", "csv")} <= links


def test_latex_and_bibtex_have_no_unicode_and_cite_qdsweep_itself(main):
    page = (main / "report.html").read_text()
    listings = [
        re.search(rf'id="methods-{name}">(.*?)</pre>', page, re.DOTALL)[1]
        for name in ("latex", "bibtex")
    ]
    assert all(listing.isascii() for listing in listings)
    assert "\\citep{qdsweep}" in listings[0] and "@misc{qdsweep," in listings[1]


def test_columns_that_show_nothing_are_left_out():
    columns = ["Group", "Seeds", "Score", "Steps", "Time"]
    rows = [["a", "3", "1", "\u2013", "5"], ["b", "3", "2", "\u2013", "5"]]
    sheet = Sheet("x", "X", "A note.", columns, 1, [[text_cell(t) for t in row] for row in rows])
    shown = trimmed(sheet)
    assert shown.columns == ["Group", "Score"]
    assert [[cell.text for cell in row] for row in shown.rows] == [["a", "1"], ["b", "2"]]
    names_all(shown.note, sheet.note, "Seeds 3", "Time 5")
    only = trimmed(replace(sheet, rows=sheet.rows[:1]))
    assert only.columns == ["Group", "Seeds", "Score", "Time"], "a row of its own differs from none"


def test_settings_have_the_values_of_the_domain_and_nothing_that_is_unset(tmp_path):
    run = Run(compute_run(TINY, tmp_path / "run"))
    assert run.config["algorithm"]["archive"]["threshold_min"] is None
    keys = yaml.safe_load(group_settings({"only": run}).common)
    low = run.summary["archive"]["objective_range"][0]
    assert keys["algorithm.archive.threshold_min"] == low
    assert keys["algorithm.emitters.sigma0"] == run.config["domain"]["step"]
    assert keys["domain.ranges"] == run.summary["archive"]["ranges"]
    assert not [key for key, value in keys.items() if value in (None, {}, [], "")]


def test_the_page_has_the_version_and_keeps_its_bytes(main):
    page = (main / "report.html").read_bytes()
    text = re.search(r'<p class="origin">(.*?)</p>', page.decode())[1]
    names_all(text, __version__, own_commit())
    report(main, runs_of(main))
    assert (main / "report.html").read_bytes() == page
