"""The papers in config/references.bib, which presets cite by their keys."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from qdsweep.config.files import PRESET_FOLDER
from qdsweep.errors import BadInput
from qdsweep.text import nearest

if TYPE_CHECKING:
    from qdsweep.config.experiment import Experiment


@cache
def bibliography() -> dict[str, str]:
    """Returns key -> BibTeX entry, from qdsweep's file and the working directory's."""
    entries_by_key: dict[str, str] = {}
    for path in (PRESET_FOLDER / "references.bib", Path("config/references.bib")):
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        entries = re.split(r"\n(?=@)", text)
        entries_by_key |= {entry[1]: entry[0] for entry in map(_keyed, entries) if entry}
    return entries_by_key


def _keyed(entry: str) -> tuple[str, str] | None:
    """Returns an entry and its key; None for the text before the first entry."""
    match = re.match(r"@\w+\s*\{\s*([^\s,{}]+)\s*,", entry)
    return (entry.strip(), match[1]) if match else None


def check_cited(experiments: Iterable["Experiment"]) -> None:
    """Refuses a key of `cite` that config/references.bib does not have.

    Raises:
        BadInput: The message names the key, and the algorithm or domain that cites it.
    """
    for experiment in experiments:
        for kind, part in (("algorithm", experiment.algorithm), ("domain", experiment.domain)):
            for key in part.cite:
                if key not in bibliography():
                    raise BadInput(
                        f"{kind} {part.name}: cite = {key!r}: config/references.bib has no such "
                        f"entry; {nearest(key, bibliography())}add it there"
                    )
