"""Commands of the pages in docs/: their programs take them, and what they name is there.

What a page executes when the site is built is in test_site.py.
"""

import re
import shlex

import pages
import pytest
from snakemake.cli import parse_args
from support import REPO

from qdsweep.cli import parsers
from qdsweep.cli.arguments import overrides
from qdsweep.config.compose import compose

PAGES = {str(path.relative_to(REPO)): path for path in sorted((REPO / "docs").rglob("*.md"))}
# What a page calls its reader's own.
THEIRS = ("results/", "my_", "/", "theirs", "build/")
MADE = ("containers/qdsweep.sif", "qdsweep.tar", "seeds.txt")


def commands(text: str) -> list[list[str]]:
    """The lines of a page's sh blocks, as words; pipes and redirections end a command."""
    lines = []
    for words in pages.commands(text):
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words.pop(0)
        for end in ("|", "&&", ">", ";"):
            words = words[: words.index(end)] if end in words else words
        if words:
            lines.append(words)
    return lines


def is_there(name: str, text: str) -> bool:
    """Whether a file is in the clone, is written by the page, or is the reader's own."""
    own = re.findall(r"^```\w+\n# ([\w/.]+)", text, flags=re.M)
    return (
        (REPO / name).exists()
        or name in MADE
        or name in own
        or name.startswith(THEIRS)
        or name in re.findall(r"`(\w+\.yaml)`", text)  # `study.yaml`: its content follows
    )


def check_qdsweep(words: list[str], text: str) -> None:
    arguments = parsers()[0].parse_args(words)
    experiment = getattr(arguments, "experiment", None)
    # A preset, whose keys are set to what they can be; or a file that the page writes.
    if isinstance(experiment, str) and not is_there(experiment, text):
        assert compose(experiment, overrides(getattr(arguments, "set", [])))


def check_snakemake(words: list[str], text: str) -> None:
    _, arguments = parse_args(words)
    for file in [*(arguments.configfile or []), *(arguments.profile or [])]:
        assert is_there(str(file), text), file


@pytest.mark.parametrize("page", PAGES)
def test_its_commands_can_be_typed(page, monkeypatch):
    monkeypatch.chdir(REPO)  # where they are typed
    text = PAGES[page].read_text()
    for words in commands(text):
        program, *rest = words
        try:
            if program == "qdsweep":
                check_qdsweep(rest, text)
            elif program == "snakemake":
                check_snakemake(rest, text)
        except SystemExit:
            pytest.fail(f"{page}: {shlex.join(words)} is refused")
        if program == "make":
            targets = re.findall(r"^([\w-]+):", (REPO / "Makefile").read_text(), flags=re.M)
            assert set(rest) <= set(targets), f"{page}: {words}"
        for word in words:
            if re.match(r"(config|docs|profiles|benchmarks|containers|envs|tests)/", word):
                assert is_there(word, text), f"{page}: {word}"


@pytest.mark.parametrize("page", [page for page in PAGES if "/tutorials/" in page])
def test_a_tutorial_is_plain_markdown(page):
    """GitHub shows a directive as a block without its name, file and options."""
    assert not re.search(r"^(```|:{3,})\{", PAGES[page].read_text(), flags=re.M)


def test_the_tutorial_has_the_files_of_the_pages_for_users_of_other_tools():
    shown = dict(pages.files(PAGES["docs/tutorials/own_domain.md"].read_text()))
    ours = ("config/plugins/bowl_domain.py", "config/experiments/bowl.yaml")
    for name, source in (("bowl.py", "theirs/bowl.py"), *((name, f"ours/{name}") for name in ours)):
        assert shown[name] == (REPO / "docs/coming_from" / source).read_text()


@pytest.mark.parametrize("page", ["learning", "rl", "searches"])
def test_measurements_follow_the_instructions(page):
    text = PAGES[f"docs/{page}.md"].read_text()
    assert re.findall(r"^## (.+)", text, flags=re.M)[-1] == "Evidence"


def test_there_are_commands():
    programs = [words[0] for path in PAGES.values() for words in commands(path.read_text())]
    assert programs.count("qdsweep") > 5
    assert programs.count("snakemake") > 10
