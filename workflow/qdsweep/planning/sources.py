"""The file that a key of a sweep stands in, for messages."""

import contextlib
from collections.abc import Iterator, Mapping

from qdsweep.config.keys import Path
from qdsweep.errors import BadInput


@contextlib.contextmanager
def naming_file(sources: Mapping[Path, str], key: str) -> Iterator[None]:
    """Puts the file of a key of the sweep, from `key_sources`, before what is wrong with it."""
    try:
        yield
    except BadInput as error:
        where = sources.get((key,), sources.get((), ""))
        raise BadInput(f"{where}: {error}" if where else str(error)) from None
