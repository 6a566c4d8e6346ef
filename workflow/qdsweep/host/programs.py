"""Programs that are installed on this machine."""

import os
import shutil
import sys
from pathlib import Path


def which(program: str) -> str | None:
    """Returns where a program is: beside this Python, or else on the PATH; None if nowhere."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return shutil.which(program, path=path)
