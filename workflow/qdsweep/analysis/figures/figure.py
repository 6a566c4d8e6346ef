"""A figure on its way to paper and page: picture, caption, and the data that it shows."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from qdsweep.analysis.figures.style import save
from qdsweep.analysis.stages import maker_of
from qdsweep.files import damaged, write_csv, write_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_ABOUT = ("name", "section", "title", "caption", "why")


@dataclass(frozen=True)
class Drawn:
    """A figure with all that a reader needs.

    Attributes:
        name: The stem of its files.
        section: The heading of the report that it stands under.
        title: What it shows, a few words.
        caption: Whole sentences.
        figure: The picture.
        data: What it shows, a row for each point.
    """

    name: str
    section: str
    title: str
    caption: str
    figure: "Figure"
    data: "pd.DataFrame"


@dataclass(frozen=True)
class Omitted:
    """A figure that is not drawn, as its data say nothing; `why`: the end of a sentence."""

    name: str
    section: str
    title: str
    why: str


def save_figures(folder: Path, drawn: Sequence[Drawn | Omitted], index: str = "figures") -> None:
    """Writes NAME.pdf, .png, .svg and .csv of each figure, and an index for the report.

    Of a figure that is not drawn, a line says why.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for one in drawn:
        if isinstance(one, Omitted):
            print(f"{one.name}: not drawn: {one.why}", file=sys.stderr)
        else:
            _save(folder, one)
    _write_index(folder / f"{index}.json", [_about(one) for one in drawn])


def save_one(folder: Path, one: Drawn) -> list[Path]:
    """Writes a figure's files again, which are returned, and its entry in an index of others."""
    folder.mkdir(parents=True, exist_ok=True)
    files, path = _save(folder, one), folder / "figures.json"
    entries = {entry["name"]: entry for entry in read_index(path)} if path.exists() else {}
    _write_index(path, [*(entries | {one.name: _about(one)}).values()])
    return files


def read_index(path: Path) -> list[dict[str, str]]:
    """Reads what `save_figures` has written about its figures; `why` is empty of a drawn one.

    Raises:
        BadInput: It is damaged.
    """
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        # Earlier releases drew all.
        return [{key: ({"why": ""} | entry)[key] for key in _ABOUT} for entry in entries]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise damaged(path, error, maker_of(path).anew) from error


def _save(folder: Path, one: Drawn) -> list[Path]:
    pictures = (".pdf", ".png", ".svg")
    save(one.figure, folder / one.name, pictures)
    write_csv(one.data, folder / f"{one.name}.csv")
    return [folder / f"{one.name}{ending}" for ending in (*pictures, ".csv")]


def _about(one: Drawn | Omitted) -> dict[str, str]:
    return {key: getattr(one, key, "") for key in _ABOUT}


def _write_index(path: Path, entries: list[dict[str, str]]) -> None:
    write_text(path, json.dumps(entries, indent=1, ensure_ascii=False) + "\n")
