"""The film of an elite: its episode, and its scores with fresh seeds, as a stream of records.

The first record, JSON, repeats the number and the cell of the request. The process ends a film by a
record of the kind "." with a byte, whether the film is complete.
"""

import numpy as np

from qdsweep.config.sweep import Reevaluate
from qdsweep.domains.plugin import drawn_lines
from qdsweep.errors import BadInput
from qdsweep.experiment.fresh_seeds import fresh_seeds
from qdsweep.features.rollouts.rollout import episodes_of, play_episode, score, seed_to_play
from qdsweep.features.rollouts.stream import Pictures, Send, introduce_elite, note
from qdsweep.runs.elite import Elite
from qdsweep.runs.load import Run

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
