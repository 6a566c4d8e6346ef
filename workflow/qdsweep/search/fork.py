"""A run that begins as another one did: it is given that run's state, which only saves time."""

import numpy as np

from qdsweep.errors import BadInput
from qdsweep.files import link
from qdsweep.host.lock import Lock, Locked
from qdsweep.records.history import HistoryFile
from qdsweep.records.metrics import copy_rows, read_rows
from qdsweep.records.paths import RunDir


def fork(donor: RunDir, child: RunDir, iteration: int) -> bool:
    """Gives a run that has not begun its donor's state after an iteration.

    Its experiment is the donor's with one more change of the schedule, after this iteration. It
    goes on from there as if it had been computed from nothing: with the donor's reload file (a
    hard link), its rows of metrics.csv and its insertions into the archive.

    Args:
        donor: The donor's folder.
        child: The run's folder.
        iteration: The last iteration that both have in common.

    Returns:
        Whether it was given something; not where it has begun, or where the donor has no reload
        file of exactly this iteration any more. It is computed from nothing then.
    """
    reload = donor.state.reload(iteration)
    try:
        with Lock(child.state.lock, wait=0.0):
            if child.state.reloads() or not reload.exists():
                return False
            if len(read_rows(donor.state.metrics)) < iteration:
                return False
            copy_rows(donor.state.metrics, child.state.metrics, iteration)
            _copy_insertions(donor, child, iteration)
            link(reload, child.state.reload(iteration))  # last: a run goes on from it
    except Locked:  # another sweep computes it
        return False
    return True


def _copy_insertions(donor: RunDir, child: RunDir, iteration: int) -> None:
    try:
        rows = HistoryFile(donor.state).read()
    except (BadInput, ValueError):  # torn: the run is as good without it
        return
    if rows is None:
        return
    copied = HistoryFile(child.state)
    copied.begin(rows[: np.searchsorted(rows["iteration"], iteration, side="right")])
    copied.close()
