"""What a run asks of Snakemake: its budget, and memory."""

import json
from pathlib import Path

from qdsweep.config.cluster import Cluster
from qdsweep.config.experiment import Experiment

GROWTH = 1.5


def launch_budget(experiment: Experiment, run_dir: Path) -> str:
    """The budget of a run as `launch` takes it: a larger one lengthens the run.

    A run that finished with a larger budget, for another sweep or an earlier version of this
    one, keeps that: for Snakemake nothing has changed then.

    Args:
        experiment: The experiment, with the budget that the sweep asks for.
        run_dir: The run's folder.
    """
    ((unit, amount),) = experiment.budget.items()
    try:
        status = json.loads((run_dir / "state" / "status.json").read_bytes())
        if status["status"] == "finished":
            amount = max(amount, int(status["budget"][unit]))
    except (OSError, ValueError, KeyError, TypeError):
        pass  # a new run, or a budget in another unit
    return f"{unit}={amount}"


def memory_mb(cluster: Cluster, run_dir: Path) -> int:
    """Memory of a run [MB]: of the cluster config, times 1.5 for each time it ran out of it.

    Args:
        cluster: The cluster config.
        run_dir: The run's folder, whose `state/last_stop.json` says how it stopped.
    """
    try:
        stops = json.loads((run_dir / "state" / "last_stop.json").read_bytes())["memory_stops"]
    except (OSError, ValueError, KeyError):
        stops = 0
    needed = cluster.mem_mb_main + cluster.workers * cluster.mem_mb_per_worker
    return round(needed * GROWTH ** min(stops, 4))
