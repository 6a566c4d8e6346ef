"""The text of the README and of docs/guide."""

import re
import shlex

import yaml
from readme import PAGES, blocks
from refusals import names_all
from support import REPO

from qdsweep.sweep.grammar import expand

README = PAGES[REPO / "README.md"]


def test_the_sweeps_are_yaml_as_they_stand():
    for block in blocks("yaml"):
        assert expand(yaml.safe_load(block)["sweep"], REPO).rows


def test_links_lead_somewhere():
    for path, text in PAGES.items():
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", text):
            assert (path.parent / target).exists(), f"{path}: {target}"


def test_the_readme_leads_to_every_page_of_the_guide():
    there = {path for path in (REPO / "docs/guide").glob("*.md") if path.stem != "index"}
    assert there == {path for path in PAGES if path.parent.name == "guide"}
    for path in there:
        assert f"](docs/guide/{path.name})" in README, path


def test_the_readme_takes_two_minutes():
    assert len(README.splitlines()) <= 120
    head = README.splitlines()[:30]
    assert sum("![" in line for line in head) == 1, "one figure, no badges"
    assert any(
        shlex.split(line)[:2] == ["make", "demo"] for line in head if line.startswith("make")
    )
    tutorials = (f"docs/tutorials/{name}.md" for name in ("first_sweep", "own_domain", "notebook"))
    names_all("\n".join(head), "qdsweep status", "qdsweep watch", *tutorials)
