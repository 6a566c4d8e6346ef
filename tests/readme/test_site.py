"""`make docs`: the site is built as a whole, its tutorials executed."""

import re
import subprocess
from html import unescape
from pathlib import Path

import pandas as pd
import pytest
from refusals import names_all
from support import REPO, command, copy_project

from qdsweep.cli import parsers


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site of a fresh clone; warnings are errors."""
    clone = copy_project(tmp_path_factory.mktemp("docs") / "qdsweep")
    words = ["make", "--no-print-directory", "-o", ".venv/docs", "docs"]
    done = subprocess.run(words, cwd=clone, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return clone / "build/site"


def text_of(page: Path) -> str:
    """The text of a page without its markup."""
    return unescape(re.sub(r"<[^>]+>", "", page.read_text()))


@pytest.mark.timeout(900)
def test_it_shows_what_was_computed(site):
    executed = site.parent / "executed/tutorials"
    sweep = executed / "first_sweep/results/sweeps/first"
    assert (sweep / "report.html").stat().st_size > 10_000
    runs = pd.read_csv(sweep / "summary.csv")
    assert len(runs) == 6, "a third seed was added, and the budget raised"
    assert set(runs["iteration"]) == {60}
    names_all(text_of(site / "tutorials/first_sweep.html"), "4 runs", "6 runs")
    scores = re.findall(r"\b14032\.657\b", text_of(site / "tutorials/own_domain.html"))
    assert len(scores) == 2, "of the script, and of the run"
    assert re.search("^True ", text_of(site / "tutorials/notebook.html"), flags=re.M)


def test_every_earlier_address_leads_to_a_page(site):
    """People have links to pages of earlier sites."""
    for address in (REPO / "tests/fixtures/addresses.txt").read_text().split():
        page = site / f"{address}.html"
        moved = re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', page.read_text())
        target = page.parent / moved[1] if moved else page
        assert "<h1>" in target.read_text(), address


def test_it_needs_no_net_and_names_no_folder_of_the_machine(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        text = page.read_text()
        assert not re.search(r"<(script|img|link)\b[^>]*(src|href)=\"(https?:)?//", text), page
        assert str(site.parents[1]) not in text, page
        assert str(REPO) not in text, page


def test_it_has_every_page_and_every_command(site):
    for source in {*(REPO / "docs").rglob("*.md")} - {*(REPO / "docs/_ext").rglob("*.md")}:
        page = source.relative_to(REPO / "docs").with_suffix(".html")
        assert (site / page).is_file(), page
    shown = text_of(site / "command_line.html")
    for name in parsers()[1]:
        assert f"usage: qdsweep {name}" in shown
    assert "domain.solution_dim" in text_of(site / "reference/domains.html")


WRONG = {
    "a command that fails": ("```{run}\nfalse\n```", "false", "1"),
    "a command that ends well": ("```{run}\n:exit: 2\ntrue\n```", "true", "0"),
    "a comment": ("<!-- run -->\n```sh\nfalse\n```", "false", "1"),
    "a cell that fails": ("```{python}\n1 / 0\n```", "ZeroDivisionError"),
    "a link that leads nowhere": ("[here](nowhere.md)", "nowhere.md"),
    "an anchor that is not there": ("[here](#nowhere)", "nowhere"),
    "a figure that does not exist": ("```{picture} no.png\n```", "no.png"),
}


def build_fails(folder: Path) -> str:
    """Builds a site as `make docs` does; returns its messages."""
    words = ("-c", REPO / "docs", "-qW", "--keep-going", folder, folder / "build/site")
    done = command("sphinx-build", *words, check=None)
    assert done.returncode != 0
    return done.stderr


def test_pages_that_are_wrong_are_named(tmp_path):
    (tmp_path / "index.md").write_text("# Page\n")
    for name, (page, *_) in WRONG.items():
        (tmp_path / f"{name}.md").write_text(f"---\norphan: true\n---\n# Page\n\n{page}\n")
    _, *messages = build_fails(tmp_path).split(f"{tmp_path}/")
    for name, (_, *named) in WRONG.items():
        names_all("".join(m for m in messages if m.startswith(f"{name}.md:")), *named)
    assert not [message for message in messages if message.startswith("index.md")]


def test_a_comment_without_a_block_builds_no_site(tmp_path):
    (tmp_path / "index.md").write_text("# Page\n\n<!-- run -->\n\n```sh\ntrue\n```\n")
    names_all(build_fails(tmp_path), "index.md", "run")
