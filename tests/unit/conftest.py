"""Fixtures of unit tests."""

import sys
from pathlib import Path

import pytest


@pytest.fixture
def plugins(tmp_path, monkeypatch):
    """Writes modules into a working directory's config/plugins."""
    folder = tmp_path / "config" / "plugins"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def write(name, text):
        (folder / f"{name}.py").write_text(text)
        file = getattr(sys.modules.get(name), "__file__", None)
        if file and Path(file).parent.name == "plugins":  # an earlier test's, of this name
            monkeypatch.delitem(sys.modules, name)

    yield write
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]
