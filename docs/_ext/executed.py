"""Executes a page while it is read: the output on a page is real.

A page is plain Markdown, which reads well without the site. A comment in the line before a block of
code or a paragraph makes a directive of it. Every page has its own empty folder, in which its files
are written and its commands run:

- ``<!-- file -->`` writes the block. The first line of the block is a comment with the file's name.
- ``<!-- run -->`` types each line of the block into bash and shows the output. If the exit code of
  a line is not that of ``exit=`` (0), the build fails. ``last=N`` shows only the last lines.
- ``<!-- python -->`` makes the block a cell of a notebook: later cells of the page know its names,
  and the value of the last expression is shown.
- ``<!-- picture FILE -->`` shows a figure that the page has made. The paragraph is its caption.
- ``<!-- table FILE -->`` shows a table in Markdown that the page has made.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from qdsweep.config.files import HOME

CLONE = Path(__file__).resolve().parents[2]
NOTEBOOK = Path(__file__).with_name("notebook.py")


class Executed(SphinxDirective):
    """The base of the directives: the page's folder, and the layout of text and output."""

    has_content = True

    @property
    def folder(self) -> Path:
        """The folder in which this page is executed; empty when the page begins."""
        return folder_of(self.env.app, self.env.docname)

    @property
    def pictures(self) -> Path:
        """The folder of the site's figures until pages are written."""
        return self.folder / ".pictures"

    def shown(self, text: str, language: str, caption: str = "") -> nodes.Node:
        """Returns a block of code, under a caption if it has one."""
        block = nodes.literal_block(text, text, language=language)
        if not caption:
            return block
        title = nodes.caption("", "", nodes.literal(caption, caption))
        return nodes.container(
            "", title, block, literal_block=True, classes=["literal-block-wrapper"]
        )

    def made(self, name: str) -> Path:
        """Returns a file that the page has made; a name may be a pattern."""
        files = sorted(self.folder.glob(name))
        if len(files) != 1:
            raise self.error(f"{name}: {len(files)} files of the page have this name")
        return files[0]


class File(Executed):
    """``{file} NAME``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Writes the file and shows it."""
        path = self.folder / self.arguments[0]
        text = "\n".join(self.content) + "\n"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        languages = {".py": "python", ".yaml": "yaml", ".toml": "toml"}
        return [self.shown(text, languages.get(path.suffix, "text"), self.arguments[0])]


class Run(Executed):
    """``{run}``."""

    option_spec: ClassVar = {
        "exit": directives.nonnegative_int,
        "last": directives.positive_int,
    }

    def run(self) -> list[nodes.Node]:
        """Runs the lines, one after another, and shows them with their output."""
        session = []
        for line in "\n".join(self.content).replace("\\\n", "\\\0").splitlines():
            line = line.replace("\0", "\n")
            session += [f"$ {line}", *self._output_of(line)] if line.strip() else []
        return [self.shown("\n".join(session), "console")]

    def _output_of(self, line: str) -> list[str]:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            cwd=self.folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        output = plain(done.stdout, self.folder)
        if done.returncode != self.options.get("exit", 0):
            raise self.error(f"`{line}` ended with exit code {done.returncode}:\n{output}")
        lines = output.rstrip().splitlines()
        if len(lines) > (count := self.options.get("last", len(lines))):
            return ["...", *lines[-count:]]
        return lines


class Python(Executed):
    """``{python}``."""

    def run(self) -> list[nodes.Node]:
        """Executes the cell and shows it with its output."""
        cell = "\n".join(self.content)
        notebook = notebooks.get(self.env.docname) or open_notebook(self.env.docname, self.folder)
        print(json.dumps(cell), file=notebook.stdin, flush=True)
        failed, output = json.loads(notebook.stdout.readline())
        output = plain(output, self.folder).rstrip()
        if failed:
            raise self.error(f"this cell failed:\n{cell}\n{output}")
        shown = [self.shown(cell, "python")]
        return [*shown, self.shown(output, "text")] if output else shown


class Picture(Executed):
    """``{picture} FILE``."""

    required_arguments = 1
    option_spec: ClassVar = {"alt": directives.unchanged, "width": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        """Shows the figure in the site, with a caption if there is one."""
        made = self.made(self.arguments[0])
        # A copy: later commands of the page may redraw the figure.
        self.pictures.mkdir(exist_ok=True)
        kept = self.pictures / f"{len(list(self.pictures.iterdir()))}-{made.name}"
        shutil.copy(made, kept)
        there = os.path.relpath(kept, Path(self.env.doc2path(self.env.docname)).parent)
        alt = self.options.get("alt", " ".join(self.content) or made.stem)
        image = nodes.image(uri=there, alt=alt)
        if "width" in self.options:
            image["width"] = self.options["width"]
        figure = nodes.figure("", image)
        if self.content:
            text, _ = self.parse_inline(" ".join(self.content))
            figure += nodes.caption("", "", *text)
        return [figure]


class Table(Executed):
    """``{table} FILE``."""

    has_content = False
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Parses the file as a part of the page."""
        return self.parse_text_to_nodes(self.made(self.arguments[0]).read_text(encoding="utf-8"))


def folder_of(app: Sphinx, page: str) -> Path:
    """Returns the folder in which a page is executed."""
    return Path(app.outdir).parent / "executed" / page


def environment() -> dict[str, str]:
    """Returns the environment of commands: this Python's programs first, no colours."""
    programs = [str(Path(sys.executable).parent), os.environ["PATH"]]
    shown = {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "100", "MPLBACKEND": "agg"}
    return os.environ | shown | {"PATH": os.pathsep.join(programs), "QDSWEEP": str(CLONE)}


def plain(output: str, folder: Path) -> str:
    """Returns output without colours, carriage returns and folders of this machine."""
    output = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output)
    output = re.sub(r"[^\n]*\r(?!\n)", "", output)
    output = output.replace(f"{folder}/", "").replace(str(folder), ".")
    return output.replace(str(CLONE), "$QDSWEEP").replace(str(HOME), "$QDSWEEP")


# The page's interpreter, while a process of Sphinx reads the page.
notebooks: dict[str, subprocess.Popen[str]] = {}


def open_notebook(page: str, folder: Path) -> "subprocess.Popen[str]":
    """Starts the interpreter of a page."""
    notebooks[page] = subprocess.Popen(
        [sys.executable, "-c", NOTEBOOK.read_text(encoding="utf-8")],
        cwd=folder,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    return notebooks[page]


COMMENT = re.compile(
    r"^<!-- (?:(file|run|python)(.*) -->\n```\w+\n((?:(?!```).*\n)*)```$"
    r"|(picture|table) (.*) -->\n((?:.+\n)*))",
    flags=re.M,
)
UNUSED = re.compile(r"^<!-- (file|run|python|picture|table)\b.*", flags=re.M)


def directive(comment: re.Match[str]) -> str:
    """Returns the directive that a comment and the lines after it stand for."""
    name, words, content = (group for group in comment.groups() if group is not None)
    options = words.split()
    argument = options.pop(0) if name in ("picture", "table") else ""
    if name == "file":
        first, _, content = content.partition("\n")
        argument = first.removeprefix("# ")
    lines = [":{}: {}".format(*option.split("=")) for option in options]
    return "\n".join([f"```{{{name}}} {argument}", *lines, f"{content}```\n"])


def begin(app: Sphinx, page: str, content: list[str]) -> None:
    """Makes directives of the page's comments, and empties the page's folder."""
    content[0] = COMMENT.sub(directive, content[0])
    if unused := UNUSED.search(content[0]):
        raise ExtensionError(f"{page}.md: {unused[0]}: no block of code follows in the next line")
    shutil.rmtree(folder_of(app, page), ignore_errors=True)
    folder_of(app, page).mkdir(parents=True)


def end(app: Sphinx, _: nodes.document) -> None:
    """Ends the page's interpreter."""
    if notebook := notebooks.pop(app.env.docname, None):
        notebook.communicate()


def setup(app: Sphinx) -> dict[str, Any]:
    """Names the directives."""
    for directive in (File, Run, Python, Picture, Table):
        app.add_directive(directive.__name__.lower(), directive, override=True)
    app.connect("source-read", begin)
    app.connect("doctree-read", end)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
