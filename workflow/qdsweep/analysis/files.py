"""Reading what an earlier stage wrote, and writing whole files or none."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from qdsweep.errors import BadInput


def write_with(path: Path, write: Callable[[Path], object]) -> None:
    """Calls `write` with a temporary path beside `path`, then renames it into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp{path.suffix}")
    try:
        write(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Writes `text` to `path` atomically."""
    write_with(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


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
        raise BadInput(f"{path} is damaged ({error}). {remedy}") from error
