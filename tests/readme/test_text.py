"""The README's text."""

import re
import shlex

import yaml
from readme import README, blocks
from support import REPO


def test_the_sweep_of_the_readme_is_yaml_as_it_stands():
    for block in blocks("yaml"):
        assert isinstance(yaml.safe_load(block)["sweep"], str)


def test_links_lead_somewhere():
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (REPO / target).exists(), target


def test_the_first_lines_are_short():
    head = README.splitlines()[:40]
    assert sum("![" in line for line in head) == 1, "one figure, no badges"
    assert any(
        shlex.split(line)[:2] == ["make", "demo"] for line in head if line.startswith("make")
    )
