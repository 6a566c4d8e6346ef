"""What `plots/` of a sweep holds, as the page shows it: figures by section, animations."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from qdsweep.analysis.figures.figure import read_index
from qdsweep.analysis.page.embed import (
    Download,
    Picture,
    data_url,
    download,
    figure_picture,
    last_frame,
)
from qdsweep.analysis.selection import Tables
from qdsweep.analysis.stages import maker_of
from qdsweep.files import read_json, require
from qdsweep.records.sweep_dir import SweepDir
from qdsweep.sweep.labels import Name

_ENLARGED = 1.5  # letters of 7.5 points are then as large as the text
_FILMS = 4_500_000  # bytes of animations in a page, at most


@dataclass(frozen=True)
class Shown:
    """A figure in the page, with its data and the command that draws it again.

    One without a picture is not drawn; its caption says why.
    """

    name: str
    title: str
    caption: str
    picture: Picture | None
    files: list[Download]
    command: str


@dataclass(frozen=True)
class Film:
    """An animation, behind its last frame until a reader asks for it."""

    title: str
    still: Picture
    picture: Picture


@dataclass(frozen=True)
class Films:
    """The animations of a sweep, how many are too large for the page, and what makes them."""

    films: list[Film]
    left_out: int
    commands: list[str]


def figure_sections(sweep_dir: Path, column_width: float | None = None) -> dict[str, list[Shown]]:
    """Returns every figure of `plots/figures.json` and of the folders below it, by section.

    Figures for a column in print, which have small letters, are enlarged.

    Raises:
        BadInput: `qdsweep plot` has not drawn them.
    """
    sweep = SweepDir(sweep_dir)
    main = sweep.plots / "figures.json"
    require(main, maker_of(main).first)
    sections: dict[str, list[Shown]] = {}
    for index in (main, *sorted(sweep.plots.glob("*/*.json"))):
        if index.parent == sweep.rollouts:  # no list of figures
            continue
        stage = maker_of(index).name
        for entry in read_index(index):
            name, path = entry["name"], index.parent / entry["name"]
            if entry["why"]:
                left_out = Shown(name, entry["title"], f"Not drawn: {entry['why']}.", None, [], "")
                sections.setdefault(entry["section"], []).append(left_out)
                continue
            only = f" --only {name}" if stage == "plot" else ""
            shown = Shown(
                name,
                entry["title"],
                entry["caption"],
                figure_picture(path, 1.0 if column_width is None else _ENLARGED),
                [download(path.with_name(f"{name}.csv"))],
                f"qdsweep {stage} {sweep_dir.name}{only}",
            )
            sections.setdefault(entry["section"], []).append(shown)
    return sections


def films(sweep_dir: Path, tables: Tables, names: Mapping[str, Name]) -> Films:
    """Returns the animations of `qdsweep evolution` and `qdsweep rollouts`; `names` by group."""
    sweep = SweepDir(sweep_dir)
    groups = dict(zip(tables.summary["id"], tables.summary["group"], strict=True))
    titles: dict[Path, str] = {}
    for run, group in groups.items():  # in the sweep's order
        path = sweep.evolution / f"{run}.gif"
        if path.exists():
            titles[path] = f"{group}: how the archive filled"
    index = sweep.rollouts / "rollouts.json"
    if index.exists():
        entries = read_json(index, "Run `qdsweep rollouts` again.")["rollouts"]
        for group, name in names.items():
            for entry in (entry for entry in entries if entry["group"] == group):
                titles[sweep.rollouts / entry["file"]] = f"{name.label}: {entry['title']}"
    found, size = [], 0
    for path, title in titles.items():
        size += path.stat().st_size
        if size <= _FILMS:
            still = last_frame(path)
            url = data_url(path.read_bytes(), ".gif")
            found.append(Film(title, still, Picture(url, still.width, still.height)))
    stages = dict.fromkeys(path.parent.name for path in titles)
    commands = [f"qdsweep {stage} {sweep_dir.name}" for stage in stages]
    return Films(found, len(titles) - len(found), commands)
