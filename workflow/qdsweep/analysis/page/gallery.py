"""Figures and animations of `plots/` as the page shows them: pictures, captions, downloads."""

import base64
import gzip
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from qdsweep.analysis.data import SweepData
from qdsweep.analysis.figures.figure import read_index
from qdsweep.analysis.stages import maker_of
from qdsweep.files import damaged, read_json, require
from qdsweep.ornaments import ornament

if TYPE_CHECKING:
    from PIL.Image import Image


_KINDS = {
    ".csv": "text/csv",
    ".gif": "image/gif",
    ".gz": "application/gzip",
    ".jpg": "image/jpeg",
    ".md": "text/markdown",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".tex": "application/x-tex",
}
# Sizes [bytes] above which a text is packed, a packed text left out, an SVG shown as PNG.
_PACKED, _TOO_LARGE, _HEAVY = 60_000, 1_500_000, 700_000

# Figures that are on the page in another form, or within another figure: only files are there.
_TWINS = ("overview", "learning_curves", "parallel_coordinates", "search_coordinates")
_ENLARGED = 1.5  # letters of 7.5 points are then as large as the text
_FILMS = 4_500_000  # bytes of animations in a page, at most


@dataclass(frozen=True)
class Picture:
    """A picture in the page: its data URL, and its size in pixels, which reserves its place."""

    url: str
    width: int
    height: int


@dataclass(frozen=True)
class Download:
    """A file for download. A file that is too large has no URL; the page names its folder."""

    name: str
    url: str | None


def data_url(content: bytes, suffix: str) -> str:
    """Returns bytes as a URL that needs no other file and no network."""
    return f"data:{_KINDS[suffix]};base64,{base64.b64encode(content).decode()}"


def packed(text: str) -> str:
    """Returns a text as base64 of gzip, which `unpack` of the page reads."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def download(path: Path, name: str | None = None) -> Download:
    """Returns a text file as a download; a large one is packed (`.gz`), which pandas reads too."""
    content, name = path.read_bytes(), name or path.name
    if len(content) <= _PACKED:
        return Download(name, data_url(content, path.suffix))
    content = gzip.compress(content, mtime=0)
    if len(content) > _TOO_LARGE:
        return Download(name, None)
    return Download(f"{name}.gz", data_url(content, ".gz"))


def printed(stem: Path) -> list[Download]:
    """Returns the PDF, the SVG and the data of a figure."""
    pictures = [stem.with_name(f"{stem.name}{end}") for end in (".pdf", ".svg")]
    for path in pictures:
        require(path, maker_of(path).first)
    links = [
        Download(p.name, data_url(p.read_bytes(), p.suffix) if p.stat().st_size <= _HEAVY else None)
        for p in pictures
    ]
    return [*links, download(stem.with_name(f"{stem.name}.csv"))]


def figure_picture(stem: Path, enlarged: float = 1.0) -> Picture:
    """Returns a figure: its SVG, or its PNG where that is lighter and the SVG is heavy.

    `enlarged`: how many times its size in print it has in the page.

    Raises:
        BadInput: `qdsweep plot` has not drawn it.
    """
    svg, png = (stem.with_name(f"{stem.name}.{kind}") for kind in ("svg", "png"))
    for path in (svg, png):
        require(path, maker_of(path).first)
    shown = png if svg.stat().st_size > max(_HEAVY, png.stat().st_size) else svg
    width, height = (round(side * enlarged) for side in _svg_size(svg))
    return Picture(data_url(shown.read_bytes(), shown.suffix), width, height)


def _svg_size(path: Path) -> tuple[int, int]:
    """Returns the size of a drawing of matplotlib, which states it in points."""
    text = path.read_text(encoding="utf-8", errors="replace")
    sizes = [re.search(rf'\b{side}="([\d.]+)pt"', text[:2000]) for side in ("width", "height")]
    if None in sizes or not text.rstrip().endswith("</svg>"):
        raise damaged(path, ValueError("it is truncated"))
    width, height = (round(float(size[1]) * 4 / 3) for size in sizes if size)
    return width, height


def thumbnail(path: Path) -> Picture:
    """Returns a small picture of an archive: a page of hundreds of runs stays light."""
    from PIL import Image

    with Image.open(path) as image:
        return _jpeg(image, (250, 200))


def last_frame(path: Path) -> Picture:
    """Returns the last frame of an animation, in its size: the first ones all look the same."""
    from PIL import Image, ImageSequence

    with Image.open(path) as image:
        for _ in ImageSequence.Iterator(image):
            pass
        return _jpeg(image, image.size)


def _jpeg(image: "Image", size: tuple[int, int]) -> Picture:
    image = image.convert("RGB")
    image.thumbnail(size)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=80)
    return Picture(data_url(buffer.getvalue(), ".jpg"), image.width, image.height)


@dataclass(frozen=True)
class ShownFigure:
    """A figure in the page, with its data and the command that draws it again.

    One without a picture is not drawn, and its caption has the reason. Or it has files only,
    because the page has an interactive figure of the same data.
    """

    name: str
    title: str
    caption: str
    picture: Picture | None
    files: list[Download]
    command: str

    @property
    def is_shown(self) -> bool:
        """Whether the page has its picture, or the reason why there is none."""
        return self.picture is not None or not self.files


@dataclass(frozen=True)
class Film:
    """An animation, which a reader opens.

    `still`: its last frame; None where a figure of the page has that.
    """

    title: str
    still: Picture | None
    picture: Picture


@dataclass(frozen=True)
class Films:
    """The animations of a sweep, how many are too large for the page, and what makes them."""

    films: list[Film]
    left_out: int
    commands: list[str]


class Maps(NamedTuple):
    """Maps in a report: their HTML, and the animations that they play."""

    html: str = ""
    played: frozenset[str] = frozenset()


def figure_sections(data: SweepData) -> dict[str, list[ShownFigure]]:
    """Returns every figure of `plots/figures.json` and of the folders below it, by section.

    Figures for a column in print, which have small letters, are enlarged.

    Raises:
        BadInput: `qdsweep plot` has not drawn them.
    """
    sweep = data.sweep
    enlarged = 1.0 if data.plan.figures.column_width is None else _ENLARGED
    main = sweep.plots / "figures.json"
    require(main, maker_of(main).first)
    sections: dict[str, list[ShownFigure]] = {}
    for index in (main, *sorted(sweep.plots.glob("*/*.json"))):
        if index.parent == sweep.rollouts:  # no list of figures
            continue
        stage = maker_of(index).name
        for entry in read_index(index):
            name, path = entry["name"], index.parent / entry["name"]
            if entry["why"]:
                left_out = ShownFigure(
                    name, entry["title"], f"Not drawn: {entry['why']}.", None, [], ""
                )
                sections.setdefault(entry["section"], []).append(left_out)
                continue
            only = f" --only {name}" if stage == "plot" else ""
            shown = ShownFigure(
                name,
                entry["title"],
                entry["caption"],
                None if name.startswith(_TWINS) else figure_picture(path, enlarged),
                printed(path),
                f"qdsweep {stage} {sweep.name}{only}",
            )
            sections.setdefault(entry["section"], []).append(shown)
    return sections


@ornament("the animations on the page", lambda why, *about: Films([], 0, []))
def films(data: SweepData, played: frozenset[str] = frozenset()) -> Films:
    """Returns the animations of `qdsweep evolution` and `qdsweep rollouts`.

    Args:
        data: The sweep.
        played: Names of animations that the maps of the page play.
    """
    sweep = data.sweep
    groups = dict(zip(data.summary["id"], data.summary["group"], strict=True))
    titles: dict[Path, str] = {}
    for run, group in groups.items():  # in the sweep's order
        path = sweep.evolution / f"{run}.gif"
        if path.exists():
            titles[path] = f"{group}: archive over time"
    index = sweep.rollouts / "rollouts.json"
    if index.exists():
        every = read_json(index, "Run `qdsweep rollouts` again.")["rollouts"]
        entries = [entry for entry in every if entry["file"] not in played]
        for group, name in data.called.names.items():
            for entry in (entry for entry in entries if entry["group"] == group):
                titles[sweep.rollouts / entry["file"]] = f"{name.label}: {entry['title']}"
    shown, size = [], 0
    for path, title in titles.items():
        size += path.stat().st_size
        if size <= _FILMS:
            still = last_frame(path)
            picture = Picture(data_url(path.read_bytes(), ".gif"), still.width, still.height)
            is_stilled = path.parent == sweep.evolution
            shown.append(Film(title, None if is_stilled else still, picture))
    stages = dict.fromkeys(path.parent.name for path in titles)
    commands = [f"qdsweep {stage} {sweep.name}" for stage in stages]
    return Films(shown, len(titles) - len(shown), commands)
