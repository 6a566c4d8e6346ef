"""The last lines of a log, however long it is."""

from pathlib import Path


def last_line(path: Path) -> str:
    """Returns the last line of a log that says something."""
    return next((line for line in reversed(last_lines(path)) if line.strip()), "")


def last_lines(path: Path, size: int = 8_192) -> list[str]:
    """Returns the lines within the last bytes of a log, the first one perhaps cut at its start.

    Args:
        path: The log; no lines where it is missing.
        size: How much of it is read [bytes].
    """
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - size))
            return file.read().decode(errors="replace").splitlines()
    except OSError:
        return []
