"""An index of a sweep's runs: the contents of their files, so that only changed ones are read.

With an index, a look at 100,000 finished runs takes seconds. Its file can be removed at any time.
"""

import gc
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from qdsweep.files import atomic, read_arrays, signature

if TYPE_CHECKING:
    import numpy as np

_Entry = TypeVar("_Entry")
Key = list[Any]  # JSON
Keyed = dict[str, tuple[Key, _Entry]]


def signatures(*paths: str | Path) -> list[int]:
    """Returns time, size and inode of each file; zeros where there is none."""
    return [number for path in paths for number in signature(path) or (0, 0, 0)]


@dataclass(frozen=True)
class Index(Generic[_Entry]):
    """A file with an entry for each run: JSON, and numbers; never a pickle.

    Attributes:
        path: The file.
        form: The layout of all entries, such as names of fields; a file of another form is ignored.
        dump: Returns an entry as JSON, which may contain one-dimensional arrays of floats.
        load: Returns the entry of that JSON, in which its length replaces an array, and of
            a function that returns the next array of a length.
    """

    path: Path
    form: list[Any]
    dump: Callable[[_Entry], Any]
    load: Callable[[Any, Callable[[int], "np.ndarray"]], _Entry]

    def update(
        self,
        runs: Iterable[str],
        key_of: Callable[[str], Key | None],
        read: Callable[[list[str]], Iterable[_Entry | None]],
    ) -> dict[str, _Entry]:
        """Returns the entry of each run; a run whose key has changed is read again.

        Args:
            runs: Run ids.
            key_of: Returns all that the entry of a run depends on; None: the run has no entry.
            read: Reads the entry of each of some runs; None: it has none.
        """
        before = self._read()
        keys = {run: key for run in runs if (key := key_of(run)) is not None}
        changed = [run for run, key in keys.items() if run not in before or before[run][0] != key]
        fresh = dict(zip(changed, read(changed), strict=True))
        now: Keyed[_Entry] = {}
        for run, key in keys.items():
            if run not in fresh:
                now[run] = before[run]
            elif (entry := fresh[run]) is not None:
                now[run] = key, entry
        if len(now) != len(before) or any(entry is not None for entry in fresh.values()):
            self._write(now)
        return {run: entry for run, (_, entry) in now.items()}

    def _read(self) -> Keyed[_Entry]:
        start = 0

        def take(length: int) -> "np.ndarray":
            nonlocal start
            start += length
            return numbers[start - length : start]

        try:
            arrays = read_arrays(self.path)  # it compares checksums
            numbers = arrays["numbers"]
            with _without_collections():
                about = json.loads(str(arrays.pop("about"), "utf-8"))
                if about["form"] != self.form:
                    return {}
                runs = {run: (key, self.load(data, take)) for run, key, data in about["runs"]}
            return runs if start == len(numbers) else {}
        except Exception:  # the file is missing or damaged
            return {}

    def _write(self, runs: Keyed[_Entry]) -> None:
        import numpy as np

        arrays = [np.empty(0)]

        def length_of(array: "np.ndarray") -> int:
            arrays.append(array)
            return len(array)

        with _without_collections():
            # Run by run, which takes less memory than one JSON text.
            rows = b", ".join(
                json.dumps([run, key, self.dump(entry)], default=length_of).encode()
                for run, (key, entry) in runs.items()
            )
        # The sweep may have no folder yet, or one of another user.
        with suppress(OSError), atomic(self.path) as file:
            about = b'{"form": %b, "runs": [%b]}' % (json.dumps(self.form).encode(), rows)
            del rows
            text = np.frombuffer(about, np.uint8)
            np.savez(file, about=text, numbers=np.concatenate(arrays))


@contextmanager
def _without_collections() -> Iterator[None]:
    """Pauses garbage collection, which doubles the time to make very many objects."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
