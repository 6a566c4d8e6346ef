"""The documentation site: `make docs` builds it in build/site, without a net.

Sphinx with MyST and furo, because pages stay plain Markdown that reads well in a clone, a small
directive of ours executes them (_ext/executed.py), docstrings become the reference of the API, and
every link inside is checked.
"""

import sys
from pathlib import Path

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
# What is documented elsewhere, and what autodoc shortens.
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
