"""The film of an elite: its episode, and its scores with fresh seeds, as a stream of records.

The first record, JSON, repeats the number and the cell of the request. The process ends a film by a
record of the kind "." with a byte, whether the film is complete.
"""

import math

import numpy as np

from qdsweep.config.sweep import Reevaluate
from qdsweep.domains.plugin import drawn_lines
from qdsweep.elites.corrected_archive import read_hits
from qdsweep.errors import BadInput
from qdsweep.experiment.fresh_seeds import fresh_seeds
from qdsweep.features.rollouts.rollout import episodes_of, play_episode, score, seed_to_play
from qdsweep.features.rollouts.stream import Pictures, Send, introduce_elite, note
from qdsweep.files import AGAIN
from qdsweep.records.paths import RunDir
from qdsweep.records.sums import read_checked
from qdsweep.runs.elite import Elite
from qdsweep.runs.load import Run

_NORMAL = 1.959963984540054  # the 97.5 % quantile
_LONGEST = 30.0  # of an episode at full rate of pictures [s]
FRESH = Reevaluate()  # the fresh seeds are those of `qdsweep reevaluate`


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
    introduce_elite(elite, send)
    if hits := _hits(run, elite.row):
        send(note(hits=hits))
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
    if run.experiment.domain.is_deterministic or getattr(run.domain, "is_deterministic", False):
        send(note(deterministic=True))
        return is_complete
    seeds = fresh_seeds(FRESH, run.summary["id"], len(run.cells)).reshape(FRESH.times, -1)
    for fresh_seed in seeds[:, elite.row].tolist():
        send(note(fresh=score(run, elite, fresh_seed).tolist()))
    return is_complete


def _hits(run: Run, row: int) -> tuple[int, int, float, float] | None:
    """Returns how often an elite landed in its own cell, of how many evaluations, with an interval.

    They are those of the largest re-evaluation of this archive; None where there is none. The
    interval of the rate is Wilson's of 1927, at 95 %.
    """
    known = {}
    for path in run.path.glob("reevaluated-*.json"):
        about = read_checked(path, AGAIN)
        if about["archive_digest"] == run.summary["archive_digest"]:
            known[int(about["times"])] = path.stem
    for times in sorted(known, reverse=True):
        hits = read_hits(RunDir(run.path), known[times])
        if len(hits):
            return int(hits[row]), times, *wilson(int(hits[row]), times)
    return None


def wilson(hits: int, times: int) -> tuple[float, float]:
    """Returns the ends of Wilson's 95 % interval of a rate."""
    rate, spread = hits / times, _NORMAL**2 / times
    half = math.sqrt(rate * (1 - rate) * spread + (spread / 2) ** 2)
    low, high = ((rate + spread / 2 + sign * half) / (1 + spread) for sign in (-1, 1))
    return low, high


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
    shot, scored = play_episode(run, elite, seed, _LONGEST, Pictures(send))
    send(note(steps=shot.steps))
    return scored
