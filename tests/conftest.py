"""Settings of every test."""

from pathlib import Path

import pytest

from qdsweep.cpu import apply_baseline

apply_baseline("avx2")  # before numpy is imported, as `qdsweep run` does it


@pytest.fixture(autouse=True)
def in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test starts in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
