"""Animated GIFs: text above pictures, one palette, a size that a page can hold."""

import io
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from qdsweep.files import atomic

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFont import FreeTypeFont

MAX_BYTES = 1_000_000
_COLORS = 192
_SHORTEST = 0.02  # browsers show a frame that should be shorter for a tenth of a second
_MARGIN, _TITLE, _TEXT = 6, 12, 10


def write_gif(path: Path, frames: list["Image"], seconds: float, hold: float = 1.5) -> None:
    """Writes an endless animation of at most a megabyte.

    One that would be larger has every second frame left out, as often as needed.

    Args:
        path: Where to.
        frames: RGB pictures of one size, at least one.
        seconds: How long all of them take [s].
        hold: How much longer the last one stays [s].
    """
    frames = _with_one_palette(frames)
    data = _encoded(frames, seconds, hold)
    while len(data) > MAX_BYTES and len(frames) > 2:
        frames = frames[::-2][::-1]  # the last one stays
        data = _encoded(frames, seconds, hold)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic(path) as file:
        file.write(data)


def with_text(pictures: list["Image"], title: str, texts: list[list[str]]) -> list["Image"]:
    """Returns the pictures, each below its text, all of one size.

    Args:
        pictures: RGB pictures of one size.
        title: What stands above all of them, in bold.
        texts: The lines of each picture, which are wrapped.
    """
    from PIL import Image, ImageDraw

    width, height = pictures[0].size
    bold, plain = _font("DejaVuSans-Bold.ttf", _TITLE), _font("DejaVuSans.ttf", _TEXT)
    title = _wrapped(title, bold, width)
    bodies = ["\n".join(_wrapped(line, plain, width) for line in lines) for lines in texts]
    pen = ImageDraw.Draw(Image.new("RGB", (1, 1)))
    top = _MARGIN + int(pen.multiline_textbbox((0, 0), title, font=bold)[3]) + 5
    # As high as the highest: the picture must not jump.
    band = top + max(int(pen.multiline_textbbox((0, 0), b, font=plain)[3]) for b in bodies)
    frames = []
    for picture, body in zip(pictures, bodies, strict=True):
        frame = Image.new("RGB", (width, height + band + _MARGIN), "white")
        pen = ImageDraw.Draw(frame)
        pen.multiline_text((_MARGIN, _MARGIN), title, "black", bold)
        pen.multiline_text((_MARGIN, top), body, "#404040", plain)
        frame.paste(picture, (0, band + _MARGIN))
        frames.append(frame)
    return frames


def _encoded(frames: list["Image"], seconds: float, hold: float) -> bytes:
    each = max(seconds / len(frames), _SHORTEST)
    times = [round(1000 * each)] * (len(frames) - 1) + [round(1000 * (each + hold))]
    buffer = io.BytesIO()
    first, *others = frames
    animated = {"save_all": True, "append_images": others, "duration": times, "loop": 0}
    first.save(buffer, "GIF", optimize=True, **animated)
    return buffer.getvalue()


def _with_one_palette(frames: list["Image"]) -> list["Image"]:
    """Returns the frames in the colours of the first, the middle and the last."""
    from PIL import Image

    chosen = [frames[0], frames[len(frames) // 2], frames[-1]]
    palette = Image.fromarray(np.vstack(chosen)).quantize(_COLORS)
    return [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]


def _font(name: str, size: int) -> "FreeTypeFont":
    import matplotlib
    from PIL import ImageFont

    return ImageFont.truetype(str(Path(matplotlib.get_data_path(), "fonts/ttf", name)), size)


def _wrapped(text: str, font: "FreeTypeFont", width: int) -> str:
    letter = font.getlength(text) / max(len(text), 1)
    return textwrap.fill(text, int(0.95 * (width - 2 * _MARGIN) / max(letter, 1.0)))
