"""Messages are held by what they name (file, key, value, command, number), not by their wording."""

import contextlib
from collections.abc import Iterator

import pytest

from qdsweep.errors import BadInput


@contextlib.contextmanager
def refused(*names: object, kind: type[Exception] = BadInput) -> Iterator[None]:
    """What runs in it must be refused, in one message that names each of these.

    Args:
        names: Files, keys, values, commands or numbers: what no better wording loses.
        kind: The class of the error.
    """
    with pytest.raises(kind) as caught:
        yield
    names_all(str(caught.value), *names)


def names_all(text: str, *names: object) -> None:
    """A text must have each of these."""
    missing = [str(name) for name in names if str(name) not in text]
    assert not missing, f"{missing} not in: {text}"
