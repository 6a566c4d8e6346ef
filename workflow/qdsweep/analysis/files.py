"""Reading what an earlier stage wrote, and writing tables."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qdsweep.config.files import read_yaml
from qdsweep.errors import BadInput
from qdsweep.files import ANEW, atomic, damaged

if TYPE_CHECKING:
    import pandas as pd


def require(path: Path, remedy: str) -> Path:
    """Returns `path` if it exists.

    Raises:
        BadInput: It does not; the message names it and says what to do.
    """
    if not path.exists():
        raise BadInput(f"{path} does not exist. {remedy}")
    return path


def read_json(path: Path, remedy: str) -> dict[str, Any]:
    """Reads a JSON object.

    Args:
        path: The file.
        remedy: What to do where there is none.

    Raises:
        BadInput: The file is missing or is not JSON.
    """
    require(path, remedy)
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise damaged(path, error) from error


def read_csv(path: Path, remedy: str, **options: Any) -> "pd.DataFrame":
    """Reads a table; what is empty is missing, and a text such as "null" stays text.

    Args:
        path: The file.
        remedy: What to do where there is none.
        **options: As `pandas.read_csv` has them.

    Raises:
        BadInput: The file is missing or damaged.
    """
    import pandas as pd

    require(path, remedy)
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            if file.read() != b"\n":
                raise ValueError("its last line is torn")
        table = pd.read_csv(path, **{"keep_default_na": False, "na_values": [""], **options})
        if len(table.columns) < 2:
            raise ValueError("it is no table")
        return table
    except (OSError, ValueError) as error:
        raise damaged(path, error) from error


def read_config(run_dir: Path) -> dict[str, Any]:
    """Reads config.yaml of a run.

    Raises:
        BadInput: It is missing or damaged.
    """
    path = require(run_dir / "config.yaml", "Run `snakemake` again to make it.")
    try:
        return read_yaml(path)
    except BadInput as error:
        raise BadInput(f"{error}: {ANEW}") from None


def write_csv(table: "pd.DataFrame", path: Path) -> None:
    """Writes a table whole or not at all."""
    with atomic(path, "w") as file:
        table.to_csv(file, index=False, lineterminator="\n")
