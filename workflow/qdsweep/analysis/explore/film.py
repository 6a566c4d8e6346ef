"""The film of an elite: its episode as a stream of records, which the page shows as they come.

A record has a uint32 length, a byte of kind, and the content. Kinds:

    J: JSON. The first record repeats the number and the cell of the request.
    F: a picture: uint16 x, uint16 y, uint32 step, then WebP of the part that has changed.
    S: some of the parameters, float32.

The process ends a film by a record of the kind "." with a byte, whether the film is complete.
"""

import io
import json
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.config.sweep import Reevaluate
from qdsweep.domains.plugin import drawn_lines
from qdsweep.elites.reevaluation import fresh_seeds
from qdsweep.elites.rollout import episodes_of, play_episode, score, seed_to_play
from qdsweep.errors import BadInput
from qdsweep.experiment.elite import Elite
from qdsweep.experiment.load import Run

if TYPE_CHECKING:
    from PIL.Image import Image

LONGEST = 30.0  # of an episode at full rate of pictures [s]
FRESH = Reevaluate()  # the fresh seeds are those of `qdsweep reevaluate`
MOST_PARAMETERS = 1000  # that the page draws
_QUALITY = 60
Send = Callable[[bytes], None]


def record(kind: str, content: bytes) -> bytes:
    """Returns a record."""
    return struct.pack("<I", len(content) + 1) + kind.encode() + content


def note(**named: Any) -> bytes:
    """Returns a record of JSON."""
    return record("J", json.dumps(named).encode())


def film(run: Run, cell: int, send: Send) -> bool:
    """Sends the episode of an elite picture by picture, and then its scores with fresh seeds.

    Args:
        run: The run.
        cell: The cell of the elite; its row where cells move or there are none.
        send: Takes each record.

    Returns:
        Whether it is complete: the elite could be shown, if its domain has pictures.

    Raises:
        BadInput: The cell has no elite, or the elite cannot be evaluated.
        QdsweepError: An evaluation fails.
    """
    elite = run.elite_in(cell)
    if elite is None:
        raise BadInput(f"the cell {cell} of {run.path} has no elite")
    every = -(-len(elite.solution) // MOST_PARAMETERS)
    known = {"objective": elite.objective, "measures": elite.measures.tolist()}
    send(note(**known, parameters=len(elite.solution), every=every))
    send(record("S", elite.solution[::every].astype("<f4").tobytes()))
    own = np.array([elite.objective, *elite.measures])
    seed, is_own = seed_to_play(run, elite)
    scored, is_complete = None, True
    try:
        scored = _show(run, elite, seed, send)
    except BadInput as error:  # it has scores, nevertheless
        send(note(unseen=str(error)))
        is_complete = False
    if scored is None or episodes_of(run.experiment.domain) > 1:
        scored = score(run, elite, seed)
    send(note(same=bool(np.array_equal(scored, own)) if is_own else None))
    if run.experiment.domain.is_deterministic:
        send(note(deterministic=True))
        return is_complete
    seeds = fresh_seeds(FRESH, len(run.cells)).reshape(FRESH.times, -1)
    for fresh_seed in seeds[:, elite.row].tolist():
        send(note(fresh=score(run, elite, fresh_seed).tolist()))
    return is_complete


def _show(run: Run, elite: Elite, seed: int, send: Send) -> np.ndarray | None:
    """Sends the drawing or the pictures of an elite; returns the score of a filmed episode.

    Raises:
        BadInput: The domain cannot be rendered, or its `draw` fails.
    """
    domain, settings = run.domain, run.experiment.domain
    if hasattr(domain, "draw"):
        send(note(lines=[line.tolist() for line in drawn_lines(domain, elite.solution)]))
        return None
    if not settings.has_episodes:
        send(note(unseen=""))
        return None
    shot, scored = play_episode(run, elite, seed, LONGEST, _Pictures(send))
    send(note(steps=shot.steps))
    return scored


class _Pictures:
    """Sends each picture as the part in which it differs from the one before it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._before: Image | None = None
        self._changed: tuple[int, ...] | None = None

    def __call__(self, picture: "Image", step: int, fps: float) -> None:
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
