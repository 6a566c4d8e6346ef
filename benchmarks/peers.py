"""Environments with the tools of the comparisons."""

import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

BIN = Path(sys.executable).parent
WORKFLOW = Path(__file__).resolve().parents[1] / "workflow"


def install(folder: Path, packages: Sequence[str]) -> Path:
    """Makes an environment with the peers, which also sees ours; returns its Python."""
    python = folder / "bin/python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        (site,) = folder.glob("lib/*/site-packages")
        (own,) = BIN.parent.glob("lib/*/site-packages")
        (site / "ours.pth").write_text(f"{own}\n{WORKFLOW}\n")
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *packages], check=True)
    return python
