"""Starts a re-evaluation: settings before numpy, signals, the log, the exit code."""

import logging
import sys
import time
from pathlib import Path
from typing import Any

from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.config.sweep import Reevaluate
from qdsweep.errors import BadInput, StorageError
from qdsweep.experiment.start import STOPPED
from qdsweep.experiment.stop import Interrupted, Stop
from qdsweep.files import require
from qdsweep.host.cpu import apply_baseline
from qdsweep.host.wall_time import seconds_left
from qdsweep.records.run_dir import RunDir

# Time to close the workers and to write what was evaluated [s].
WALL_TIME_MARGIN = 10.0


def start_reevaluation(run_dir: Path, times: int, seed: int, cluster: Cluster) -> int:
    """Evaluates the elites of a run again, writes the corrected archive, and says what was luck.

    Returns:
        0 finished, 75 stopped on purpose.

    Raises:
        QdsweepError: It failed; the message says why.
    """
    began = time.monotonic()
    if times < 1 or seed < 0:
        raise BadInput(f"--times {times} --seed {seed}: times must be at least 1, seed at least 0")
    settings = Reevaluate(times=times, seed=seed)
    run_dir = run_dir.absolute()  # a domain may change the working directory
    config = require(RunDir(run_dir).config, "Give the folder of a finished run.")
    apply_baseline(compose(str(config)).cpu_baseline)
    logging.basicConfig(format="%(asctime)s %(message)s", stream=sys.stderr)
    log = logging.getLogger("qdsweep")
    log.setLevel(logging.INFO)
    left = seconds_left(cluster.max_seconds)
    try:
        with Stop() as stop:
            from qdsweep.elites.corrected_archive import write_corrected_archive
            from qdsweep.elites.reevaluation import reevaluate

            stop.before(None if left is None else began + left - WALL_TIME_MARGIN)
            samples = reevaluate(run_dir, settings, cluster, stop)
            about = write_corrected_archive(run_dir, settings, *samples.by_repeat(times))
    except Interrupted as interruption:
        log.warning("stopped by %s and saved: the same command goes on from here", interruption)
        return STOPPED
    except OSError as error:
        raise StorageError(error, run_dir) from None
    print(summary_line(about))
    return 0


def summary_line(about: dict[str, Any]) -> str:
    """Returns the result in one line."""
    reported, corrected = about["reported"], about["corrected"]
    text = f"{about['id']}: QD score {reported['qd_score']:,.6g} as reported, "
    text += f"{corrected['qd_score']:,.6g} corrected ({about['times']} evaluations per elite)"
    if corrected["coverage"] is not None:
        before, after = 100 * reported["coverage"], 100 * corrected["coverage"]
        text += f", coverage {before:.2f} % and {after:.2f} %"
    if not about["seed_matters"]:
        text += "; no evaluation depends on its seed, so nothing had to be corrected"
    return text
