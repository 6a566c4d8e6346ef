"""Copies the state of a run to another run with the same beginning, which saves time."""

from qdsweep.errors import BadInput
from qdsweep.files import link
from qdsweep.host.lock import Lock, Locked
from qdsweep.records.history import HistoryFile, until
from qdsweep.records.metrics_file import copy_rows, read_rows
from qdsweep.records.paths import RunDir


def fork(donor: RunDir, child: RunDir, iteration: int) -> bool:
    """Copies a donor's state after an iteration to a run that has not started.

    The run's experiment is the donor's with one more change of the schedule, after this iteration.
    The run continues from there with the same bits as if it were computed from the start. It
    receives the donor's reload file (a hard link), the rows of metrics.csv and the insertions into
    the archive.

    Args:
        donor: The donor's folder.
        child: The run's folder.
        iteration: The last iteration that both have in common.

    Returns:
        Whether the state was copied. It is not if the run has started, or if the donor no longer
        has a reload file of exactly this iteration. The run is then computed from the start.
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
            link(reload, child.state.reload(iteration))  # last, because a run resumes from it
    except Locked:  # another sweep computes the run
        return False
    return True


def _copy_insertions(donor: RunDir, child: RunDir, iteration: int) -> None:
    try:
        rows = HistoryFile(donor.state).read()
    except (BadInput, ValueError):  # a truncated file, which the run does not need
        return
    if rows is None:
        return
    copied = HistoryFile(child.state)
    copied.begin(until(rows, iteration))
    copied.close()
