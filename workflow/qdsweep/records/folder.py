"""A folder under results/ and the places of its files."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Folder:
    """A folder whose files are attributes.

    Attributes:
        path: Where it is; nothing needs to be there.
    """

    path: Path

    @property
    def name(self) -> str:
        """The folder's own name."""
        return self.path.name


class Place:
    """The place of a file, or of a folder without a class of its own, inside a `Folder`.

    Args:
        name: Its path, relative to the folder.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, folder: Folder, kind: type[Folder] | None = None) -> Path:
        return folder.path / self.name
