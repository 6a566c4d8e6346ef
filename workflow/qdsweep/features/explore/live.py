"""A run that is not finished, as far as the files in its `state/` go."""

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from qdsweep.config.archive_kinds import ARCHIVES, FIXED, CVTArchive
from qdsweep.errors import BadInput
from qdsweep.files import damaged, read_json_if_whole
from qdsweep.records.history import History, HistoryFile
from qdsweep.records.paths import RunDir, StateDir
from qdsweep.runs.load import Run, load

# In place of the digest of an archive that grows, with the length of `digest_of`.
LIVE = "0" * 16


def open_run(path: Path) -> Run:
    """Returns a run, finished or not.

    Raises:
        BadInput: It cannot be shown, for a reason that the message states.
    """
    files = RunDir(path)
    if not files.state.status.exists():
        return load(path)
    # A run whose budget was raised keeps its first results until it is finished again.
    status = read_json_if_whole(files.state.status).get("status", "finished")
    return load(path) if files.summary.exists() and status == "finished" else LiveRun(path)


def open_saved(path: str) -> Run:
    """Returns a run that is not finished as in its last reload file. Its own code may run.

    Raises:
        BadInput: It has no reload file yet.
    """
    from qdsweep.runs.snapshot import snapshot

    folder = snapshot(Path(path))
    if folder is None:
        raise BadInput("the run has no reload file yet, so its elites cannot be played")
    return Run(folder)


class LiveRun(Run):
    """A run that is not finished. All its parts end at the iteration of its status.json."""

    @property
    def files(self) -> StateDir:
        """The paths of the files in its `state/`."""
        return RunDir(self.path).state

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Its status.json, with the digest `LIVE`.

        Raises:
            BadInput: It does not have what the page shows.
        """
        status = read_json_if_whole(self.files.status)
        about = status.get("archive", {})
        if getattr(ARCHIVES.get(about.get("type")), "cells", None) not in FIXED:
            raise BadInput("the run is not finished, and is shown at its end")
        return status | {"archive_digest": LIVE}

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """The evaluations, one row per iteration."""
        path, rows = self.files.metrics, int(self.summary["iteration"])
        try:
            return pd.read_csv(path, usecols=["evaluations"], nrows=rows)
        except (OSError, ValueError) as error:
            raise damaged(path, error) from error

    @cached_property
    def history(self) -> History:
        """Its insertions."""
        rows = HistoryFile(self.files).read()
        if rows is None:
            raise BadInput("the run has no history of its archive, and is shown at its end")
        rows = rows[rows["iteration"] <= len(self.metrics)]
        return History(rows["iteration"], rows["index"], rows["objective"])

    @property
    def cells(self) -> np.ndarray:
        """No cells of final elites."""
        return np.empty(0, int)

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """The objectives of the present elites, and what the archive is made of."""
        about = self.summary["archive"]
        parts = {"measures": np.empty((0, len(about["measures"])))}
        if about["type"] == "cvt":
            from qdsweep.algorithms.ribs.archives import Centroids

            archive = CVTArchive.model_validate(self.config["algorithm"]["archive"])
            ranges = [(low, high) for low, high in about["ranges"]]
            folder = RunDir(self.path).centroids
            parts["centroids"] = Centroids(folder).get(archive, about["cells"], ranges)
        return parts | {"objective": self.history.at(len(self.metrics))[1]}
