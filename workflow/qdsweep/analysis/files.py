"""Reading what an earlier stage wrote, and writing tables."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qdsweep.errors import BadInput
from qdsweep.files import atomic

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

    Raises:
        BadInput: The file is missing or is not JSON.
    """
    require(path, remedy)
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise BadInput(f"{path} is damaged ({error}): remove it. {remedy}") from error


def write_csv(table: "pd.DataFrame", path: Path) -> None:
    """Writes a table whole or not at all."""
    with atomic(path, "w") as file:
        table.to_csv(file, index=False, lineterminator="\n")
