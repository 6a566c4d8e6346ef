"""`make docs`: the site is built as a whole, its tutorials executed."""

import re
import subprocess
from html import unescape
from pathlib import Path

import pytest
from support import BIN, REPO, copy_project


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site of a fresh clone; warnings are errors."""
    clone = copy_project(tmp_path_factory.mktemp("docs") / "qdsweep")
    words = ["make", "--no-print-directory", "-o", ".venv/docs", "docs"]
    done = subprocess.run(words, cwd=clone, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return clone / "build/site"


def text_of(page: Path) -> str:
    """What a page says, without its markup."""
    return unescape(re.sub(r"<[^>]+>", "", page.read_text()))


@pytest.mark.timeout(900)
def test_it_shows_what_was_computed(site):
    first = text_of(site / "tutorials/first_sweep.html")
    assert "first: 4 runs, 0 finished" in first
    assert "goes on after 50" in first
    domain = text_of(site / "tutorials/own_domain.html")
    found = re.search(r"coverage (0\.\d+), QD score (\d+\.\d)", domain)
    assert found and float(found[1]) > 0.2, "the script of the page was run"
    executed = site.parent / "executed/tutorials"
    assert (executed / "first_sweep/results/sweeps/first/report.html").stat().st_size > 10_000
    notebook = text_of(site / "tutorials/notebook.html")
    assert "True the same bits, with its own seed" in notebook


def test_it_needs_no_net_and_names_no_folder_of_the_machine(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        text = page.read_text()
        assert not re.search(r"<(script|img|link)\b[^>]*(src|href)=\"(https?:)?//", text), page
        assert str(site.parents[1]) not in text, page
        assert str(REPO) not in text, page


def test_it_has_every_page_and_every_command(site):
    for source in (REPO / "docs").rglob("*.md"):
        page = source.relative_to(REPO / "docs").with_suffix(".html")
        assert (site / page).is_file(), page
    shown = text_of(site / "command_line.html")
    said = subprocess.run([BIN / "qdsweep", "--help"], capture_output=True, text=True, check=True)
    for command in re.findall(r"^    (\w+) ", said.stdout, flags=re.M):
        assert f"usage: qdsweep {command}" in shown
    assert "domain.solution_dim" in text_of(site / "manual.html")


BROKEN = {
    "a command that fails": ("```{run}\nfalse\n```", "ended with exit code 1"),
    "a cell that fails": ("```{python}\n1 / 0\n```", "ZeroDivisionError"),
    "a link that leads nowhere": ("[here](nowhere.md)", "nowhere.md"),
    "an anchor that is not there": ("[here](#nowhere)", "nowhere"),
    "a figure that nobody made": ("```{picture} no.png\n```", "0 files of the page"),
    "a command that should have failed": ("```{run}\n:exit: 2\ntrue\n```", "exit code 0"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_page_that_is_wrong_builds_no_site(what, tmp_path):
    (tmp_path / "index.md").write_text(f"# Page\n\n{BROKEN[what][0]}\n")
    words = [BIN / "sphinx-build", "-c", REPO / "docs", "-qW", tmp_path, tmp_path / "build/site"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert BROKEN[what][1] in done.stderr
