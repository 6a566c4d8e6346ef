"""Fixtures of tests of whole sweeps."""

import subprocess
from pathlib import Path

import pytest


@pytest.fixture
def copy(finished, tmp_path) -> Path:
    """A copy of the module's finished sweep, for a test that changes it."""
    folder = tmp_path / "copy"
    subprocess.run(["cp", "-a", finished, folder], check=True)  # keeps hard links and times
    return folder
