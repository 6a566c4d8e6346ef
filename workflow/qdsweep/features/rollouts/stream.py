"""An episode as a stream of records, which pages show as they come.

A record has a uint32 length, a byte of kind, and the content. Kinds:

    J: JSON.
    F: a picture: uint16 x, uint16 y, uint32 step, then WebP of the part that has changed.
    S: some of the parameters, float32.
"""

import io
import json
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from qdsweep.features.rollouts.film import Shot
from qdsweep.runs.elite import Elite

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_PARAMETERS = 1000  # that a page draws
_QUALITY = 60
Send = Callable[[bytes], None]


def record(kind: str, content: bytes) -> bytes:
    """Returns a record."""
    return struct.pack("<I", len(content) + 1) + kind.encode() + content


def note(**named: Any) -> bytes:
    """Returns a record of JSON."""
    return record("J", json.dumps(named).encode())


def introduce_elite(elite: Elite, send: Send) -> None:
    """Sends score and parameters of an elite."""
    every = -(-len(elite.solution) // MOST_PARAMETERS)
    known = {"objective": elite.objective, "measures": elite.measures.tolist()}
    send(note(**known, parameters=len(elite.solution), every=every))
    send(record("S", elite.solution[::every].astype("<f4").tobytes()))


class Pictures:
    """Sends each picture as the part in which it differs from the one before it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._before: Image | None = None
        self._changed: tuple[int, ...] | None = None

    def __call__(self, picture: "Image", step: int, fps: float) -> None:
        """Sends a picture after a step of an episode with `fps` steps per second."""
        from PIL import ImageChops

        box = (0, 0, *picture.size)
        if self._before is None:
            self._send(note(width=picture.width, height=picture.height, fps=fps))
        else:
            last, difference = self._changed, ImageChops.difference(self._before, picture)
            self._changed = box = difference.getbbox() or (0, 0, 1, 1)
            if last is not None:  # else traces of the compression of that part would stay
                low, high = map(min, last[:2], box[:2]), map(max, last[2:], box[2:])
                box = (*low, *high)
        self._before, part = picture, io.BytesIO()
        picture.crop(box).save(part, "WEBP", quality=_QUALITY, method=1)
        self._send(record("F", struct.pack("<HHI", box[0], box[1], step) + part.getvalue()))


def stream(elite: Elite, shot: Shot, same: bool | None) -> bytes:
    """Returns all records of an episode.

    Args:
        elite: The elite.
        shot: Its episode, with all pictures.
        same: Whether its score is that of the archive; None if the episode has another seed.
    """
    records: list[bytes] = []
    introduce_elite(elite, records.append)
    pictures = Pictures(records.append)
    for picture, step in zip(shot.frames, shot.moments, strict=True):
        pictures(picture, step, shot.fps)
    return b"".join([*records, note(steps=shot.steps, same=same)])
