"""The documentation site: `make docs` builds it in build/site, without network access.

Sphinx with MyST and furo: pages are plain Markdown that is also readable in a clone, comments in
them have it executed (_ext/executed.py), and docstrings become the reference of the API. Sphinx
checks every internal link.
"""

import posixpath
import sys
from pathlib import Path

from sphinx.application import Sphinx

from qdsweep import __version__

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "qdsweep"
author = copyright = "The qdsweep developers"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "executed",
    "clone",
    "commands",
]
exclude_patterns = ["_ext"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4  # `page.md#a-heading`, as in a clone

nitpicky = True
# Names that are documented elsewhere, and names that autodoc shortens.
nitpick_ignore_regex = [
    ("py:.*", r"(np|numpy|pd|pandas|ribs|pydantic|collections|typing|pathlib|abc|enum)\..*"),
    ("py:.*", r"(ArchiveBase|Path|PathLike|os\.PathLike|ArrayLike|ndarray|optional|array-like)"),
]
nitpick_ignore_regex += [
    ("py:class", rf"qdsweep\.{name}")
    for name in (r"records\.paths\.RunFiles", r"config\.experiment\.Experiment")
]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_numpy_docstring = False
napoleon_use_ivar = True
default_role = "code"  # `text` of docstrings

html_theme = "furo"
html_title = f"qdsweep {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
pygments_style = "friendly"

# Addresses of earlier sites, and the pages that have their content now.
MOVED = {
    "coming_from/pyribs": "tutorials/own_domain",
    "guide/what_to_sweep": "plugins",
    "own_algorithms": "plugins",
    "promises": "evidence",
    "reliability": "evidence",
}


def redirect(app: Sphinx, error: Exception | None) -> None:
    """Writes a page at each earlier address that leads to the new one."""
    for old, new in MOVED.items() if error is None and app.builder.format == "html" else ():
        address = posixpath.relpath(new, posixpath.dirname(old) or ".") + ".html"
        refresh = f'<meta http-equiv="refresh" content="0; url={address}">'
        path = Path(app.outdir, f"{old}.html")
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'<!doctype html>{refresh}<a href="{address}">{new}</a>\n')


def setup(app: Sphinx) -> None:
    """Connects the function that writes redirects."""
    app.connect("build-finished", redirect)
