"""The page as `qdsweep explore` serves it: HTML, style, and a script of four files of one theme."""

from pathlib import Path

_TEMPLATES = Path(__file__).parent / "templates"
_THEMES = ("data", "layout", "maps", "panel")


def html() -> str:
    """Returns the page, without any data."""
    return _read("explore.html")


def style() -> str:
    """Returns its style."""
    return _read("explore.css")


def script() -> str:
    """Returns its script, a module in which all files share one scope."""
    return "\n".join(_read(f"explore_{theme}.js") for theme in _THEMES)


def _read(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")
