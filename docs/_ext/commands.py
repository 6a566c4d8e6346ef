"""``{commands}``: every command of `qdsweep`, as `--help` shows it."""

import argparse
from typing import Any
from unittest import mock

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from qdsweep.cli import groups_of, parsers


class Commands(SphinxDirective):
    """A section per group of `qdsweep --help-all`, with a section per command."""

    def run(self) -> list[nodes.Node]:
        """Returns the sections."""
        parser, commands = parsers()
        top = help_of(parser)
        sections = []
        for heading, names in groups_of(commands).items():
            group = nodes.section(ids=[nodes.make_id(heading)], names=[heading])
            group += nodes.title(text=heading)
            group += [section(name, commands[name]) for name in names]
            sections.append(group)
        return [nodes.literal_block(top, top, language="text"), *sections]


def section(name: str, parser: argparse.ArgumentParser) -> nodes.section:
    """Returns a command's section."""
    text = help_of(parser)
    made = nodes.section(ids=[f"qdsweep-{name}"], names=[f"qdsweep {name}"])
    made += nodes.title(text=f"qdsweep {name}")
    made += nodes.literal_block(text, text, language="text")
    return made


def help_of(parser: argparse.ArgumentParser) -> str:
    """Returns the help text for a terminal of 100 columns."""
    with mock.patch.dict("os.environ", {"COLUMNS": "100", "NO_COLOR": "1"}):
        return parser.format_help().rstrip()


def setup(app: Sphinx) -> dict[str, Any]:
    """Names the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
