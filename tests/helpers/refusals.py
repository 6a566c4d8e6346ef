"""Tests check the names in a message (file, key, value, command, number), not its wording."""

import contextlib
from collections.abc import Iterator

import pytest

from qdsweep.errors import BadInput


@contextlib.contextmanager
def refused(*names: object, kind: type[Exception] = BadInput) -> Iterator[None]:
    """Checks that its block is refused, in one message that contains each of these names.

    Args:
        names: Files, keys, values, commands or numbers, which any wording contains.
        kind: The class of the error.
    """
    with pytest.raises(kind) as caught:
        yield
    names_all(str(caught.value), *names)


def names_all(text: str, *names: object) -> None:
    """Checks that a text contains each of these names."""
    missing = [str(name) for name in names if str(name) not in text]
    assert not missing, f"{missing} not in: {text}"
