"""The saver of a run: when to write a reload file, and the stop before the time limit."""

import logging
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from qdsweep.domains.base import Domain
from qdsweep.experiment import reload
from qdsweep.experiment.attempt import Attempt
from qdsweep.experiment.outputs import describe_domain
from qdsweep.experiment.recorded_changes import Insertions
from qdsweep.experiment.state import State
from qdsweep.experiment.stop import Stop
from qdsweep.host.clock import AWAKE
from qdsweep.records.metrics_file import Metrics

log = logging.getLogger("qdsweep")

# Time to close the workers and write the last files, in addition to three saves and training [s].
_WALL_TIME_MARGIN = 5.0
# The log reports an interval between two saves that is longer than this [s].
LOGGED_INTERVAL = 60.0


@dataclass(eq=False, kw_only=True)
class Saver:
    """Writes the reload files of an attempt.

    Attributes:
        attempt: The attempt.
        domain: The run's domain.
        versions: The versions that decide the bits of its results.
        metrics: Its metrics.csv, which must have the rows of a reload file.
        history: Its history, which must have them, too.
        stop: Stops the run before its time limit.
        record: The record of the attempt in status.json, which gets the time of a save.
        path: The newest reload file.
    """

    attempt: Attempt
    domain: Domain
    versions: dict[str, str]
    metrics: Metrics
    history: Insertions
    stop: Stop
    record: dict[str, Any]
    path: Path

    def __post_init__(self) -> None:
        """Starts the time until the first save."""
        self._limits = self.attempt.experiment.reload
        self._seconds = 0.0
        self._logged_interval = LOGGED_INTERVAL / 2
        self._saved_at = AWAKE.now()

    def save_if_due(self, state: State) -> float:
        """Saves if a save is due, and returns the time that it took [s]."""
        if AWAKE.now() - self._saved_at < self._interval():
            return 0.0
        self.save(state)
        self._log_interval()
        return self._seconds

    def save(self, state: State) -> None:
        """Writes the rows of metrics, and then the reload file that needs them."""
        start = time.perf_counter()
        self.metrics.flush(durable=True)
        self.history.flush(durable=True)
        state.current.elites = self.history.before(state)
        header = {
            "metrics": self.metrics.fingerprint,
            **self.history.described,
            "domain": describe_domain(self.domain),
        }
        files, fingerprint = self.attempt.run.state, self.attempt.identity.fingerprint
        self.path = reload.save_state(state, files, fingerprint, self.versions, header)
        self._saved_at = AWAKE.now()
        self._seconds = time.perf_counter() - start
        self.record["save"] = round(self._seconds, 2)
        self.watch_wall_time()

    def watch_wall_time(self) -> None:
        """Stops the run in time for one more save, from the cost of the last one and training."""
        if self.attempt.wall_time is not None:
            margin = _WALL_TIME_MARGIN + 3 * self._seconds + self.stop.longest_delay
            self.stop.before(partial(self.attempt.wall_time.end, margin))

    def _interval(self) -> float:
        """Returns the time between two saves [s], which is longer for costly saves."""
        by_cost = self._seconds / self._limits.max_cost
        return min(self._limits.max_seconds, max(self._limits.min_seconds, by_cost))

    def _log_interval(self) -> None:
        """Logs the work that a kill may lose where saving is costly, each time that it doubles."""
        interval = self._interval()
        if interval >= 2 * self._logged_interval:
            self._logged_interval = interval
            log.info(
                "a reload file of %.0f MB takes %.1f s, so it is saved every %.0f s "
                "(reload.max_cost, reload.max_seconds), in whole iterations. A kill loses at most "
                "this time, and a signal loses nothing",
                self.path.stat().st_size / 1e6,
                self._seconds,
                interval,
            )
