"""The files that Python opens in a block."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_opened: list[Path] | None = None


def _note_opened(event: str, arguments: tuple) -> None:
    if _opened is not None and event == "open" and isinstance(arguments[0], str | Path):
        _opened.append(Path(arguments[0]))


sys.addaudithook(_note_opened)


@contextmanager
def opened() -> Iterator[list[Path]]:
    """Yields the files that Python opens in the block, as the interpreter reports them."""
    global _opened
    _opened = []
    try:
        yield _opened
    finally:
        _opened = None
