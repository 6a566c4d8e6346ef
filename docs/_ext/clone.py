"""Pages and links that lead out of docs/ into the clone.

A line `<!-- all of FILE -->` of a page is replaced by that Markdown file of the clone. Links to
such a file lead to its page in the site. Links to other files give the file itself. Links to
folders become plain text.
"""

import os
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

CLONE = Path(__file__).resolve().parents[2]
PAGES = {
    "README.md": "index.md",
    "config/README.md": "manual.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "code_of_conduct.md",
}
LINK = re.compile(r"(!?)\[((?:[^][]|\[[^][]*\])*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)]*)?\)")
WHOLE = re.compile(r"^<!-- all of (\S+) -->$", flags=re.M)


def rebased(text: str, source: Path, page: Path) -> str:
    """Returns text of `source` with links that are correct in `page`."""

    def link(match: re.Match[str]) -> str:
        mark, label, target, anchor = match.groups(default="")
        path = Path(os.path.normpath(source.parent / target))
        if path.is_dir():
            return label
        if path.is_relative_to(CLONE) and (own := PAGES.get(str(path.relative_to(CLONE)))):
            path = CLONE / "docs" / own
        return f"{mark}[{label}]({os.path.relpath(path, page.parent)}{anchor})"

    return LINK.sub(link, text)


def read(app: Sphinx, name: str, content: list[str]) -> None:
    """Inserts the file and corrects the links of the page."""
    page = Path(app.env.doc2path(name))

    def whole(match: re.Match[str]) -> str:
        source = CLONE / match[1]
        app.env.note_dependency(str(source))
        return rebased(source.read_text(encoding="utf-8"), source, page)

    content[0] = WHOLE.sub(whole, rebased(content[0], page, page))


def setup(app: Sphinx) -> dict[str, Any]:
    """Connects it, before a page is parsed."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
