"""`qdsweep --help`: its groups, the examples of each command, and wrong names."""

import re
import shlex

import pytest
from in_process import qdsweep
from refusals import names_all

from qdsweep.cli import GROUPS, INTERNAL, groups_of, parsers

PARSER, COMMANDS = parsers()
HIDDEN = {
    *("launch", "place", "decide"),
    *("search", "aggregate", "importance", "corrected", "winners", "confirmed"),
    *("evolution", "rollouts"),
}


def listed(text: str) -> list[str]:
    return re.findall(r"^  (\w+) +\S", text, re.MULTILINE)


def test_the_groups_and_the_hidden_commands_are_all_commands(tmp_path):
    shown = [name for names in GROUPS.values() for name in names]
    assert sorted([*shown, *HIDDEN]) == sorted(COMMANDS)
    assert {*groups_of(COMMANDS)[INTERNAL]} == HIDDEN
    assert listed(qdsweep("--help", cwd=tmp_path)) == shown
    assert {*listed(qdsweep("--help-all", cwd=tmp_path))} == {*COMMANDS}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_examples_that_can_be_typed(name):
    text = COMMANDS[name].format_help()
    lines = re.findall(rf"^  qdsweep ({name}\b(?:.*\\\n)?.*)", text, re.MULTILINE)
    assert lines
    for line in lines:
        words = re.split(r" {3,}| \| ", re.sub(r"\\\n +", "", line))[0]
        PARSER.parse_args(shlex.split(words))


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("statsu", ("'statsu'", "'status'", "qdsweep --help")),
        ("xyzzy", ("'xyzzy'", "qdsweep --help")),
    ],
)
def test_an_unknown_command_is_refused_with_the_nearest_name(typed, names, tmp_path):
    text = qdsweep(typed, cwd=tmp_path, code=2)
    names_all(text, *names)
    assert "launch" not in text
    assert len(text.splitlines()) == 2
